package forward

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/budget"
)

// stuck is a backend that confirms nothing until it is let go.
func stuck() (*memory, func()) {
	gate := make(chan struct{})
	return &memory{answer: func(ctx context.Context, _ *Run) error {
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}, func() { close(gate) }
}

// The key that the events of a request share is kept and paid for once, whatever lies between them.
func TestTheKeyOfARequestIsHeldOnce(t *testing.T) {
	limit := budget.New(64 << 20)
	m, release := stuck()
	f := start(t, config(1), m, Deps{Budget: limit})
	const n = 4000
	b := batch(event.Delivered, strings.Split(strings.Repeat("1\n", n-1)+"1", "\n")...)
	b.Common = bytes.Repeat([]byte("k"), 1024)
	for i := range b.Events {
		e := &b.Events[i]
		if e.HasKey, e.Key = true, b.Common; i%10 == 5 {
			e.Key = fmt.Append(nil, i)
		}
	}
	r := forward(t, f, b)
	if held := limit.Held(); held > n*100 {
		t.Errorf("%d bytes are held for %d events of one byte", held, n)
	}
	release()
	waitDelivered(t, r)
	all := events(t, m.sent())
	if len(all) != n {
		t.Fatalf("%d events", len(all))
	}
	for i, e := range all {
		if want := string(b.Events[i].Key); string(e.Key) != want {
			t.Fatalf("event %d has the key %.20s, not %.20s", i, e.Key, want)
		}
	}
}

// The key of one request is not taken for that of the next one in the same frame.
func TestKeysOfRequestsInOneFrame(t *testing.T) {
	m, release := stuck()
	f := start(t, config(1), m, Deps{})
	var all []*Receipt
	for i := range 20 {
		b := batch(event.Delivered, "1", "2", "3")
		b.Common = fmt.Append(nil, "key-", i)
		for j := range b.Events {
			b.Events[j].Key, b.Events[j].HasKey = b.Common, true
		}
		all = append(all, forward(t, f, b))
		clear(b.Common) // its memory goes round
	}
	release()
	for _, r := range all {
		waitDelivered(t, r)
	}
	for i, e := range events(t, m.sent()) {
		if want := fmt.Sprint("key-", i/3); string(e.Key) != want {
			t.Errorf("event %d has the key %q, not %q", i, e.Key, want)
		}
	}
}

// A stream is told what keeps its events out: its own, those of others, or that they will never fit.
func TestFullNamesTheCause(t *testing.T) {
	whole := budget.New(100_000)
	mine, other := whole.Share(50_000), whole.Share(50_000)
	f := start(t, config(1), &memory{}, Deps{Budget: mine})
	refused := func(size int, code event.Code, words string) {
		t.Helper()
		_, err := f.Forward(t.Context(), batch(event.Accepted, strings.Repeat("x", size)), f.NewReceipt(), nil)
		p, ok := err.(*event.Problem)
		if !ok || p.Code != code || !strings.Contains(p.Detail, words) || code == event.RequestTooLarge && (p.Scope != "lanes" || p.Limit != 75_000) {
			t.Errorf("%d bytes: %v, want %s ... %s", size, err, code, words)
		}
	}
	refused(80_000, event.RequestTooLarge, "send less")
	other.Reserve(50_000)
	mine.Reserve(30_000)
	refused(30_000, event.Overloaded, "the backend of stream web")
	other.Charge(20_000)
	refused(10_000, event.Overloaded, "those of other streams")
	mine.Release(30_000)
	other.Release(70_000)
	r := forward(t, f, batch(event.Delivered, strings.Repeat("x", 60_000))) // more than its share, while there is room
	waitDelivered(t, r)
	if whole.Held() != 0 {
		t.Errorf("%d bytes are held", whole.Held())
	}
}
