package ingest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
)

// meter notes what it is asked, and lets wait in front of what it is told to.
type meter struct {
	mu    sync.Mutex
	asked []string
	wait  map[string]time.Duration // by the note
}

func (m *meter) note(format string, args ...any) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := fmt.Sprintf(format, args...)
	m.asked = append(m.asked, n)
	return m.wait[n]
}

func (m *meter) Begin(who Caller, bytes int64, _ time.Time) time.Duration {
	return m.note("begin %s%s %d", who.ID, address(who), bytes)
}

func (m *meter) Take(who Caller, what Load, _ time.Time) time.Duration {
	return m.note("take %s%s %d %d", who.ID, address(who), what.Events, what.Bytes)
}

func address(who Caller) string {
	if len(who.ID) > 0 || who.Addr == (netip.Addr{}) {
		return ""
	}
	return who.Addr.String()
}

// heard returns what was asked, and forgets it.
func (m *meter) heard() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.asked
	m.asked = nil
	return all
}

func metered(m *meter) func(*Deps) { return func(d *Deps) { d.Rates = m } }

func TestRatesAreAskedOnceAPart(t *testing.T) {
	m := &meter{}
	open, closed := serve(t, Config{}, &fakeStream{}, metered(m)), serve(t, Config{}, &fakeStream{}, metered(m), guarded)
	for _, c := range []struct {
		name string
		g    *gate
		text string
		want []string
	}{
		{"by address", open, request11(events, "1\n2\n", ndjson), []string{"begin 127.0.0.1 4", "take 127.0.0.1 2 0"}},
		{"by token", closed, request11(events, "1\n2\n", ndjson, goodToken), []string{"begin me 4", "take me 2 0"}},
		{"in chunks", open, chunked(events, ndjson) + chunks("1\n2\n", 3) + "0\r\n\r\n", []string{"begin 127.0.0.1 0", "take 127.0.0.1 0 4", "take 127.0.0.1 2 0"}},
		{"without events", open, request11(events, "[]", jsonType), []string{"begin 127.0.0.1 2"}},
		{"as they were sent", open, request11(events, gzipped("1\n"), ndjson, "Content-Encoding: gzip"), []string{fmt.Sprintf("begin 127.0.0.1 %d", len(gzipped("1\n"))), "take 127.0.0.1 1 0"}},
		{"also of bad events", open, request11(events, "1\n{\n", ndjson), []string{"begin 127.0.0.1 4", "take 127.0.0.1 2 0"}},
		{"not without a token", closed, request11(events, "1\n", ndjson), nil},
		{"not when refused for something else", closed, request11(events, "1\n", goodToken, "Content-Type: text/weird"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.g.dial().send(c.text).answer()
			if got := m.heard(); !slices.Equal(got, c.want) {
				t.Errorf("asked %q, want %q", got, c.want)
			}
		})
	}
}

func TestB10CallerOverItsRate(t *testing.T) {
	const long = 2500 * time.Millisecond
	m := &meter{wait: map[string]time.Duration{"begin me 7": long, "begin 127.0.0.1 7": long, "take me 3 0": long, "take me 0 3": long}}
	open, closed := serve(t, Config{}, &fakeStream{}, metered(m)), serve(t, Config{}, &fakeStream{}, metered(m), guarded)
	bad := gzipped("x")[:3]
	for _, c := range []struct {
		name  string
		g     *gate
		text  string
		close bool
	}{
		{"bytes, before the body is sent", closed, strings.TrimSuffix(request11(events, "1234567", ndjson, goodToken, "Expect: 100-continue"), "1234567"), true},
		{"bytes, of a small body", closed, request11(events, "1234567", ndjson, goodToken), false},
		{"bytes, of an address", open, request11(events, "1234567", ndjson), false},
		{"events", closed, request11(events, "1\n2\n3", ndjson, goodToken), false},
		{"bytes in chunks, before they are inflated", closed, chunked(events, ndjson, goodToken, "Content-Encoding: gzip") + chunks(bad, 3) + "0\r\n\r\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := c.g.dial().send(c.text)
			r := conn.answer().want(t, 429, event.CallerRate)
			after, err := strconv.Atoi(r.Header.Get("Retry-After"))
			if err != nil || after < 3 || after > 4 || !r.doc.Retryable {
				t.Errorf("Retry-After %q, want 3 and at most 1 more; %s", r.Header.Get("Retry-After"), r.body)
			}
			c.g.nothing()
			if r.Close != c.close {
				t.Errorf("Connection: close %v, want %v", r.Close, c.close)
			}
			if !c.close {
				conn.send(request11(events, "1\n", ndjson, goodToken)).answer().want(t, 200, "")
				c.g.take()
			}
		})
	}
}

func TestRetryAfterIsNotTooEarly(t *testing.T) {
	for wait, most := range map[time.Duration]int{1: 2, time.Second: 2, 1001 * time.Millisecond: 3, 40 * time.Second: 51} {
		least := int((wait + time.Second - 1) / time.Second)
		seen := map[string]bool{}
		for range 1000 {
			text := retryAfter(wait)
			seen[text] = true
			if n, err := strconv.Atoi(text); err != nil || n < least || n > most {
				t.Fatalf("after %v: %s, want %d to %d", wait, text, least, most)
			}
		}
		if len(seen) < 2 {
			t.Errorf("after %v everybody comes back at the same time", wait)
		}
	}
}

// TestEventsOverTheirRate: those alone are refused, and the answer says when to send them again.
func TestEventsOverTheirRate(t *testing.T) {
	all := false
	s := &fakeStream{}
	g := serve(t, Config{}, s)
	g.accept = func(_ context.Context, b *event.Batch) error {
		b.RetryAfter = 1500 * time.Millisecond
		if b.Strict {
			b.Reject(1, event.KeyRate, "slower")
			return event.Problemf(event.KeyRate, "1 of 2 events")
		}
		for i := range b.Events {
			if all || i > 0 {
				b.Reject(i, event.KeyRate, "slower")
			}
		}
		return nil
	}
	for _, c := range []struct {
		all    bool
		status int
		code   event.Code
	}{{false, 207, ""}, {true, 429, event.KeyRate}} {
		all = c.all
		r := g.post("1\n2\n", ndjson).want(t, c.status, c.code)
		if after := r.Header.Get("Retry-After"); after != "2" && after != "3" || !strings.Contains(r.body, `"code":"key_rate","detail":"slower","retryable":true`) {
			t.Errorf("Retry-After %q, %s", after, r.body)
		}
	}
	r := g.dial().send(request11(events+"?mode=strict", "1\n2\n", ndjson)).answer().want(t, 429, event.KeyRate)
	if after := r.Header.Get("Retry-After"); after != "2" && after != "3" || r.Header.Get("Headgate-Rejected") != "1" ||
		!strings.Contains(r.body, `"retryable":true,`) || !strings.Contains(r.body, `"rejected":1,"errors":[{"index":1,`) {
		t.Errorf("Retry-After %q, %s", after, r.body)
	}
}
