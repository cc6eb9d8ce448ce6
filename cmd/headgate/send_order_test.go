package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// O06: a burst of events, of which some requests fail on the way, is sent one request after the other: never two in flight, and
// what is stored first was sent first.
func TestO06OneRequestInFlight(t *testing.T) {
	var mu sync.Mutex
	var stored []string
	flying, most, posts := 0, 0, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		flying++
		most = max(most, flying)
		posts++
		failing := posts%3 == 0
		mu.Unlock()
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		flying--
		if err != nil || failing {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		lines := strings.Fields(string(body))
		stored = append(stored, lines...)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"accepted":%d}`, len(lines))
	}))
	defer server.Close()
	var events strings.Builder
	const n = 200
	for i := range n {
		fmt.Fprintln(&events, i)
	}
	command(t, events.String(), "send", "--url", server.URL, "--stream", "s", "--batch", "7", "-").expect(t, 0, "trying again")
	mu.Lock()
	defer mu.Unlock()
	if most != 1 || len(stored) != n {
		t.Fatalf("%d requests at a time, %d events of %d", most, len(stored), n)
	}
	for i, e := range stored {
		if e != fmt.Sprint(i) {
			t.Fatalf("event %d is %s", i, e)
		}
	}
}
