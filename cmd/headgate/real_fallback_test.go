package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate-io/headgate/sdk/client"
	"github.com/headgate-io/headgate/sdk/session"
)

// deaf is a socket on which from some moment on nothing comes in.
type deaf struct {
	net.PacketConn
	now *atomic.Bool
}

func (d deaf) ReadFrom(p []byte) (n int, from net.Addr, err error) {
	for {
		if n, from, err = d.PacketConn.ReadFrom(p); err != nil || !d.now.Load() {
			return n, from, err
		}
	}
}

// mute is a socket on which from some moment on nothing comes in and nothing goes out.
type mute struct{ deaf }

func (m mute) WriteTo(p []byte, to net.Addr) (int, error) {
	if m.now.Load() {
		return len(p), nil
	}
	return m.PacketConn.WriteTo(p, to)
}

// In the middle of a session UDP comes through no more, and nobody says so: what is not acknowledged goes over HTTP, without waiting
// until the connection is given up, and nothing is lost or stored twice.
func TestF60UDPIsBlockedInTheMiddleOfASession(t *testing.T) {
	p := startGateway(t, t.TempDir(), append(onQUIC, "--set", "streams={s: {partitions: 1}}")...)
	var silent atomic.Bool
	to, err := url.Parse(p.http)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	way := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !silent.Load() { // or a handshake that takes long would have all of it sent here
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer way.Close()
	var mu sync.Mutex // guards notices
	var notices []string
	c, err := client.New(client.Config{Address: strings.TrimPrefix(p.quicURL(), "https://"), HTTP: way.URL, Stream: "s", Framing: session.JSON,
		TLS: &tls.Config{InsecureSkipVerify: true}, Listen: func() (net.PacketConn, error) {
			socket, err := net.ListenPacket("udp", "127.0.0.1:0")
			return mute{deaf{socket, &silent}}, err
		}, Notice: func(code, detail string) {
			mu.Lock()
			defer mu.Unlock()
			notices = append(notices, code+": "+detail)
		}})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 50 {
		b, err := c.Send(t.Context(), fmt.Append(nil, 2*n), fmt.Append(nil, 2*n+1))
		if err != nil {
			t.Fatal(err)
		}
		if n == 10 { // and what it sends is on its way
			silent.Store(true)
		}
		if n != 5 && n != 49 {
			continue
		}
		if r, err := b.Wait(t.Context()); err != nil || r.Accepted != 2 {
			t.Errorf("%+v %v", r, err)
		}
	}
	if c.Over() != "http" {
		t.Errorf("over %q", c.Over())
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows := p.tail("s")
	for i, row := range rows {
		if row.Data != fmt.Sprint(i) {
			t.Errorf("event %d is %s", i, row.Data)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	said := strings.Join(notices, "\n")
	if len(rows) != 100 || !strings.Contains(said, "udp: nothing comes through over UDP any more") || strings.Contains(said, "no recent network activity") {
		t.Errorf("%d events are stored; %s", len(rows), said)
	}
}

// What came over QUIC and was not acknowledged is known when it is sent over HTTP, where UDP does not come through any more; and
// what is sent over QUIC again after that, too.
func TestF60F58WhatCameOverQUICIsNotStoredAgainOverHTTP(t *testing.T) {
	p := startGateway(t, t.TempDir(), append(onQUIC, "--set", "streams={s: {partitions: 1}}")...)
	var mu sync.Mutex // guards socket and blocked
	var socket net.PacketConn
	var isDeaf atomic.Bool
	blocked := false
	to, err := url.Parse(p.http)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	way := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		open := blocked
		mu.Unlock()
		if !open { // or a handshake that takes long would have all of it sent here
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer way.Close()
	c, err := client.New(client.Config{Address: strings.TrimPrefix(p.quicURL(), "https://"), HTTP: way.URL, Stream: "s", Framing: session.JSON,
		TLS: &tls.Config{InsecureSkipVerify: true}, Listen: func() (net.PacketConn, error) {
			mu.Lock()
			defer mu.Unlock()
			if blocked {
				return nil, errors.New("blocked")
			}
			var err error
			socket, err = net.ListenPacket("udp", "127.0.0.1:0")
			return deaf{socket, &isDeaf}, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	send := func() *client.Batch {
		b, err := c.Send(t.Context(), fmt.Append(nil, sent), fmt.Append(nil, sent+1))
		if err != nil {
			t.Fatal(err)
		}
		sent += 2
		return b
	}
	result := func(b *client.Batch) client.Result {
		r, err := b.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := result(send()); r.Accepted != 2 || c.Over() != "quic" {
		t.Fatalf("%+v over %q", r, c.Over())
	}
	isDeaf.Store(true)
	unheard := send()
	p.until("it is stored, and nobody hears of it", func() bool { return len(p.tail("s")) >= sent })
	mu.Lock()
	blocked = true
	socket.Close()
	mu.Unlock()
	if r := result(unheard); r.Duplicates != 2 || c.Over() != "http" {
		t.Errorf("what was stored before: %+v over %q", r, c.Over())
	}
	if r := result(send()); r.Accepted != 2 {
		t.Errorf("what is new over HTTP: %+v", r)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := client.New(client.Config{Address: strings.TrimPrefix(p.quicURL(), "https://"), Stream: "s", Framing: session.JSON, Session: c.Session(), First: 5,
		TLS: &tls.Config{InsecureSkipVerify: true}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := again.Send(t.Context(), []byte("4"), []byte("5"), []byte("6"))
	if err != nil {
		t.Fatal(err)
	}
	if r := result(b); r.Duplicates != 2 || r.Accepted != 1 {
		t.Errorf("over QUIC again: %+v", r)
	}
	if err := again.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A later client, which has UDP no more, may divide what is left in another way.
	later, err := client.New(client.Config{HTTP: way.URL, Stream: "s", Framing: session.JSON, Session: c.Session(), First: 5})
	if err != nil {
		t.Fatal(err)
	}
	if b, err = later.Send(t.Context(), []byte("4"), []byte("5"), []byte("6"), []byte("7")); err != nil {
		t.Fatal(err)
	}
	if r := result(b); r.Duplicates != 3 || r.Accepted != 1 {
		t.Errorf("over HTTP, divided in another way: %+v", r)
	}
	if err := later.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, row := range p.tail("s") {
		if row.Data != fmt.Sprint(i) {
			t.Errorf("event %d is %s", i, row.Data)
		}
	}
	if rows := p.tail("s"); len(rows) != 8 {
		t.Errorf("%d events are stored, want 8", len(rows))
	}
}
