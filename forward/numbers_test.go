package forward

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/internal/logfolder"
)

// far is a backend in another process, which answers only while it is there, and takes what has a number that it knows for a
// repetition.
type far struct {
	memory
	away atomic.Bool
	asks atomic.Int32  // calls in flight
	last atomic.Uint64 // number that it has
}

var errAway = errors.New("no connection")

func (b *far) Resume(context.Context, int32) (uint64, error) {
	if b.asks.Add(1) > 1 {
		return 0, errors.New("BUG: two calls at once")
	}
	defer b.asks.Add(-1)
	if b.away.Load() {
		return 0, errAway
	}
	return b.last.Load(), nil
}

func (b *far) Send(ctx context.Context, r *Run) error {
	if b.asks.Add(1) > 1 {
		return errors.New("BUG: two calls at once")
	}
	defer b.asks.Add(-1)
	if b.away.Load() {
		return errAway
	}
	if r.Last <= b.last.Load() {
		return nil
	}
	b.last.Store(r.Last)
	return b.memory.Send(ctx, r)
}

// startFar starts a forwarder with a spool in dir that reserves numbers, as a process does.
func startFar(t *testing.T, dir string, b *far) *spooledForwarder {
	t.Helper()
	files, err := logfolder.Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := spool.New(spool.Config{}, spool.Deps{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	cfg := config(1)
	f, err := New(cfg, b, Deps{Spool: s, Backlog: s.Backlog, Room: s.Room, Reserve: s.Reserve})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- f.Run(ctx) }()
	go func() { ended <- s.Run(ctx) }()
	r := &spooledForwarder{Forwarder: f, spool: s}
	r.kill = func() { cancel(); <-ended; <-ended }
	return r
}

// F15: a lane that no event has come to makes events durable when its backend went away since the start.
func TestF15NewLaneWhileTheBackendIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &far{}
		f := startFar(t, t.TempDir(), b)
		synctest.Wait()
		b.away.Store(true)
		r := forward(t, f.Forwarder, batch(event.Durable, "a"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Wait(ctx, event.Durable); err != nil {
			t.Fatal(err)
		}
		b.away.Store(false)
		waitDelivered(t, forward(t, f.Forwarder, batch(event.Delivered, "b")))
		wantStrings(t, data(t, b.sent()), "a", "b")
		f.kill()
	})
}

// F15, M01: a process that never reaches its backend makes events durable, again and again, killed each time, under numbers that
// no other process has given; when it is back, all of it arrives, once and in order.
func TestF15StartsWhileTheBackendIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, dir := &far{}, t.TempDir()
		var want []string
		for life := range 5 {
			b.away.Store(life > 0 && life < 4)
			f := startFar(t, dir, b)
			for i := range 3 {
				want = append(want, fmt.Sprint(life, "-", i))
				r := forward(t, f.Forwarder, batch(event.Durable, want[len(want)-1]))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if err := r.Wait(ctx, event.Durable); err != nil {
					t.Fatalf("life %d: %v", life, err)
				}
				cancel()
			}
			if life == 4 {
				waitDelivered(t, forward(t, f.Forwarder, batch(event.Delivered, "last")))
			}
			f.kill()
		}
		wantStrings(t, data(t, b.sent()), append(want, "last")...)
		last := uint64(0)
		for _, e := range events(t, b.sent()) {
			if e.Number <= last {
				t.Errorf("number %d after %d", e.Number, last)
			}
			last = e.Number
		}
	})
}

// Nothing is numbered without the backend where nothing is known of it: the first start waits, and so does one whose spool
// was removed.
func TestUnknownNumbersWaitForTheBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &far{}
		b.away.Store(true)
		f := startFar(t, t.TempDir(), b)
		r := forward(t, f.Forwarder, batch(event.Durable, "a"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantCode(t, r.Wait(ctx, event.Durable), event.AckTimeout, "unknown")
		b.away.Store(false)
		if err := r.Wait(t.Context(), event.Durable); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // durable is in the spool; it is on its way to the backend at the same time
		f.kill()
		wantStrings(t, data(t, b.sent()), "a")
	})
}

// An old copy of a data folder has an old bound: what is numbered from there while the backend is away is not sent, as the
// backend would take it for what it has. It stays in the spool.
func TestOldCopyOfTheNumbersLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, dir := &far{}, t.TempDir()
		f := startFar(t, dir, b)
		waitDelivered(t, forward(t, f.Forwarder, batch(event.Delivered, "a")))
		f.kill()
		b.away.Store(true)
		f = startFar(t, dir, b)
		r := forward(t, f.Forwarder, batch(event.Durable, "new"))
		if err := r.Wait(t.Context(), event.Durable); err != nil {
			t.Fatal(err)
		}
		b.last.Store(1 << 40) // another process went on elsewhere
		b.away.Store(false)
		<-time.After(time.Minute)
		if code, _ := f.Trouble(); code == "" || len(data(t, b.sent())) != 1 {
			t.Errorf("trouble %q, sent %v", code, data(t, b.sent()))
		}
		f.kill()
		if st := f.spool.Stats(); st.Events != 1 {
			t.Errorf("%+v", st)
		}
	})
}
