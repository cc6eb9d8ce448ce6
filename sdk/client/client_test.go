package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/sdk/session"
)

// Waits grow, and are random as a whole also when they have grown as far as they may.
func TestO01O02BackoffHasFullJitter(t *testing.T) {
	for _, n := range []int{0, 3, 7, 20, 1000} {
		least, most := longest, time.Duration(0)
		for i := range 100 {
			d := backoff(n, float64(i)/100)
			least, most = min(least, d), max(most, d)
		}
		ceiling := longest
		if n < 7 {
			ceiling = firstWait << n
		}
		if least > ceiling/50 || most < ceiling*9/10 || most > ceiling {
			t.Errorf("attempt %d: from %v to %v, ceiling %v", n, least, most, ceiling)
		}
	}
}

// O03: clients that lose the connection at the same moment do not come back at the same moment.
func TestO03ClientsDoNotComeBackTogether(t *testing.T) {
	seen := map[time.Duration]int{}
	for range 1000 {
		seen[backoff(0, rand01()).Round(time.Millisecond)]++
	}
	for at, n := range seen {
		if n > 50 {
			t.Errorf("%d of 1000 after %v", n, at)
		}
	}
}

// node answers requests like a gateway, after some that it refuses.
type node struct {
	mu     sync.Mutex
	codes  []int // of every other answer, from the first
	asked  int
	events []string
	keys   []string
}

func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.asked++; n.asked%2 == 1 && len(n.codes) > 0 {
		w.WriteHeader(n.codes[0])
		n.codes = n.codes[1:]
		return
	}
	var events []json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&events); err != nil || r.Header.Get("Content-Type") != "application/json" {
		w.WriteHeader(400)
		return
	}
	for _, e := range events {
		n.events = append(n.events, string(e))
	}
	n.keys = append(n.keys, r.Header.Get("Idempotency-Key"))
	fmt.Fprintf(w, `{"accepted":%d}`, len(events))
}

func overHTTP(t *testing.T, n *node) *Client {
	t.Helper()
	s := httptest.NewServer(n)
	t.Cleanup(s.Close)
	c, err := New(Config{HTTP: s.URL, Stream: "s", Framing: session.JSON, Session: "me"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Over HTTP no longer than its turn, also when there is always more to send than has been: then UDP is tried again.
func TestF60HTTPHasItsTurn(t *testing.T) {
	n, ctx := &node{}, t.Context()
	turn, end := context.WithCancel(ctx)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		end()
		n.ServeHTTP(w, r)
	}))
	defer s.Close()
	c := &Client{cfg: Config{HTTP: s.URL, Stream: "s", Framing: session.JSON, Session: "me"}, http: s.Client(), changed: make(chan struct{})}
	if err := c.cfg.complete(); err != nil {
		t.Fatal(err)
	}
	c.next = 1
	for i := range 3 {
		if _, err := c.Send(ctx, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.post(ctx, turn); err != nil {
		t.Error(err)
	}
	if !slices.Equal(n.events, []string{"0"}) || c.settled() != 1 {
		t.Errorf("%q are stored over HTTP, %d is settled", n.events, c.settled())
	}
}

func TestO05WhatCanPassIsTriedAgain(t *testing.T) {
	n := &node{codes: []int{408, 425, 429, 502, 503, 504}}
	c := overHTTP(t, n)
	for i := range 6 {
		if _, err := c.Send(t.Context(), fmt.Append(nil, 2*i), fmt.Append(nil, 2*i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if !slices.Equal(n.events, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"}) || !slices.Equal(n.keys, []string{"me-1-2", "me-3-4", "me-5-6", "me-7-8", "me-9-10", "me-11-12"}) {
		t.Errorf("stored %q by %q", n.events, n.keys)
	}
}

// What can be sent later is, over HTTP: UDP, which takes 2 s to be found blocked, is not tried again each time.
func TestF60RefusalsDoNotEndHTTPsTurn(t *testing.T) {
	n := &node{codes: []int{429, 503, 429}}
	s := httptest.NewServer(n)
	defer s.Close()
	tried := 0
	c, err := New(Config{Address: "127.0.0.1:1", HTTP: s.URL, Stream: "s", Framing: session.JSON, Session: "me", Listen: func() (net.PacketConn, error) {
		tried++
		return nil, errors.New("blocked")
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if _, err := c.Send(t.Context(), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(t.Context()); err != nil { // and the goroutine that counts has ended
		t.Error(err)
	}
	if !slices.Equal(n.events, []string{"0", "1", "2", "3"}) || tried != 1 {
		t.Errorf("stored %q, UDP was tried %d times", n.events, tried)
	}
}

// A batch that is refused for good fails alone.
func TestRefusedBatchOverHTTP(t *testing.T) {
	n := &node{codes: []int{400}}
	c := overHTTP(t, n)
	one, err := c.Send(t.Context(), []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := c.Send(t.Context(), []byte("2"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Wait(t.Context()); err == nil {
		t.Error("no error")
	}
	if r, err := two.Wait(t.Context()); err != nil || r.Accepted != 1 {
		t.Error(r, err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// What can't be sent is not given up silently.
func TestCloseSaysWhatIsNotSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Config{Address: "127.0.0.1:1", Stream: "s", Listen: nobody})
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.Send(t.Context(), []byte("1"), []byte("2"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var left *UnsettledError
		if err := c.Close(ctx); !as(err, &left) || left.Events != 2 {
			t.Errorf("Close: %v", err)
		}
		if _, err := b.Wait(t.Context()); !as(err, &left) {
			t.Errorf("the batch: %v", err)
		}
		if _, err := c.Send(t.Context(), []byte("3")); err != ErrClosed {
			t.Errorf("Send: %v", err)
		}
	})
}

func TestEventsOfLines(t *testing.T) {
	for _, bad := range []string{"", " ", "1\n2"} {
		if _, err := newBatch(session.Lines, [][]byte{[]byte("1"), []byte(bad)}); err != errNewline {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
