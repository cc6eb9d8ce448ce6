package forward

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/budget"
)

// P02, forward's part: closing seals what is open at once, sends everything and then ends.
func TestP02CloseDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{answer: func(ctx context.Context, _ *Run) error { rest(ctx, time.Second); return nil }}
		cfg := config(3)
		cfg.LingerIdle, cfg.FrameEvents = time.Hour, 2
		limit := budget.New(1 << 20)
		f, err := New(cfg, m, Deps{Budget: limit})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- f.Run(t.Context()) }()
		for p := range int32(3) {
			b := batch(event.Accepted, "a", "b", "c")
			for i := range b.Events {
				b.Events[i].Partition = p
			}
			forward(t, f, b)
		}
		begin := time.Now()
		f.Close()
		f.Close()
		_, err = f.Forward(t.Context(), batch(event.Accepted, "late"), f.NewReceipt(), nil)
		wantCode(t, err, event.Draining, "")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("drained in %v of virtual time, want not to wait for lingers", took)
		}
		if got := data(t, m.sent()); len(got) != 9 {
			t.Errorf("%d events sent before the end, want 9: %q", len(got), got)
		}
		if limit.Held() != 0 {
			t.Errorf("%d bytes held, want 0", limit.Held())
		}
	})
}

func TestCloseBeforeRun(t *testing.T) {
	m := &memory{}
	f, err := New(config(2), m, Deps{})
	if err != nil {
		t.Fatal(err)
	}
	forward(t, f, batch(event.Accepted, "a"))
	f.Close()
	if err := f.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantStrings(t, data(t, m.sent()), "a")
}

// A hard stop tells everybody who waits, wherever their events are: in flight, sealed, or in the open frame.
func TestHardStopIsNeverSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := budget.New(1 << 20)
		cfg := config(1)
		cfg.LingerWaiting, cfg.FrameEvents, cfg.MaxRun = time.Hour, 1, 1
		f, err := New(cfg, &memory{answer: block}, Deps{Budget: limit})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		inflight, sealed := forward(t, f, batch(event.Delivered, "a")), forward(t, f, batch(event.Delivered, "b"))
		synctest.Wait()
		f.lanes[0].f.cfg.FrameEvents = 10
		open := forward(t, f, batch(event.Durable, "c"))
		if c := f.lanes[0].snapshot(); c.inflight != 1 || c.sealed != 1 || c.open != 1 {
			t.Fatalf("not the case to be tested: %+v", c)
		}
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "3 events") {
			t.Errorf("Run: %v, want the context's error and 3 events", err)
		}
		for _, r := range []*Receipt{inflight, sealed, open} {
			wantCode(t, r.Wait(t.Context(), event.Delivered), event.Draining, "unknown")
		}
		if limit.Held() != 0 {
			t.Errorf("%d bytes held, want 0", limit.Held())
		}
		_, err = f.Forward(t.Context(), batch(event.Accepted, "late"), f.NewReceipt(), nil)
		wantCode(t, err, event.Draining, "")
	})
}

func TestHardStopWhileResuming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := New(config(1), &memory{resume: func(int32) (uint64, error) { return 0, errors.New("down") }}, Deps{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		r := forward(t, f, batch(event.Durable, "a"))
		f.Close() // a drain that can't end
		if err := f.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run: %v", err)
		}
		wantCode(t, r.Wait(t.Context(), event.Durable), event.Draining, "unknown")
	})
}

func TestStaleEventsMeetAClosedForwarder(t *testing.T) {
	f := start(t, config(2), &memory{}, Deps{})
	refuseOlder(t, f, 0, 2)
	b := batch(event.Delivered, "a", "b")
	b.Events[1].Partition = 1
	r := f.NewReceipt()
	stale, err := f.Forward(t.Context(), b, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	b.TableVersion = 2
	_, err = f.Forward(t.Context(), b, r, stale)
	wantCode(t, err, event.Draining, "unknown") // the other event is on its way
	waitDelivered(t, r)
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no stream":           func(c *Config) { c.Stream = "" },
		"no gateway":          func(c *Config) { c.Gateway = "" },
		"no partitions":       func(c *Config) { c.Partitions = 0 },
		"too many partitions": func(c *Config) { c.Partitions = 257 },
		"unknown codec":       func(c *Config) { c.Codec = "rar" },
		"negative linger":     func(c *Config) { c.LingerIdle = -1 },
		"negative frame":      func(c *Config) { c.FrameBytes = -1 },
	} {
		cfg := config(1)
		change(&cfg)
		if _, err := New(cfg, discard{}, Deps{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// rest waits for d, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
