package forward

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
)

// grave is a DeadLetter that answers by a script and then takes everything.
type grave struct {
	mu     sync.Mutex
	script []error
	tries  int
	taken  []string
}

func (g *grave) Bury(ctx context.Context, r *Refused) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tries++
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(g.script) > 0 {
		err := g.script[0]
		g.script = g.script[1:]
		if err != nil {
			return err
		}
	}
	e := &r.Event
	g.taken = append(g.taken, fmt.Sprintf("%s key %q %v id %q time %d attrs %s of %s/%d from %s in %d/%d: %s %s",
		e.Data, e.Key, e.HasKey, e.ID, e.Time, e.Attrs, r.Batch, r.Index, r.Producer, r.Partition, r.Number, r.Code, r.Reason))
	return nil
}

// F01, E07: of all events the one that the backend refuses is in the dead letter, with all that is known of it.
func TestF01OnlyTheRefusedEventIsBuried(t *testing.T) {
	for codec, want := range map[string]string{
		"s2":   `{"n":45,"k":"key-3"} key "key-3" true id "id-45" time 46 attrs [{type key-3}] of batch/45 from 10.0.0.1 in 0/47: backend_refused no`,
		"lz4":  `{"n":45,"k":"key-3"} key "key-3" true id "id-45" time 46 attrs [{type key-3}] of batch/45 from 10.0.0.1 in 0/47: backend_refused no`,
		"gzip": `{"n":45,"k":"key-3"} key "" false id "" time 0 attrs [] of batch/45 from 10.0.0.1 in 0/47: backend_refused no`,
	} {
		synctest.Test(t, func(t *testing.T) {
			refuse := poisoned(t, `"n":45,`)
			m := &memory{answer: func(ctx context.Context, run *Run) error {
				if refuse(ctx, run) != nil {
					return &SendError{Refused: true, Err: errors.New("no")}
				}
				return nil
			}}
			g := &grave{}
			cfg := config(1)
			cfg.Codec = codec
			f := start(t, cfg, m, Deps{DeadLetter: g})
			before := forward(t, f, batch(event.Accepted, "before")) // another request in the same frame
			b := hundred(event.Delivered)
			b.ID = "batch"
			r := forward(t, f, b)
			waitDelivered(t, r)
			waitDelivered(t, before)
			if got := fmt.Sprint(before.Failed(), r.Failed()); got != "[] [{45 backend_refused true}]" {
				t.Errorf("%s: failed %s", codec, got)
			}
			wantStrings(t, g.taken, want)
			if got := len(data(t, m.sent())); got != 100 {
				t.Errorf("%s: %d events delivered, want 100", codec, got)
			}
		})
	}
}

// Until a refused event is safe in the dead letter its lane sends nothing.
func TestTheLaneWaitsForItsDeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{answer: poisoned(t, "poison")}
		g := &grave{script: slices.Repeat([]error{errors.New("full")}, 50)}
		f := start(t, config(1), m, Deps{DeadLetter: g})
		r := forward(t, f, batch(event.Delivered, "poison"))
		<-time.After(time.Second)
		next := forward(t, f, batch(event.Delivered, "next"))
		<-time.After(5 * time.Second)
		g.mu.Lock()
		taken := len(g.taken)
		g.mu.Unlock()
		if len(m.sent()) != 0 || taken != 0 || len(r.Failed()) != 0 {
			t.Error("the lane did not wait")
		}
		if code, _ := f.Trouble(); code != event.BackendUnavailable {
			t.Errorf("the lane's trouble is %q", code)
		}
		waitDelivered(t, r)
		waitDelivered(t, next)
		if g.tries != 51 || len(g.taken) != 1 {
			t.Errorf("%d tries, %d taken", g.tries, len(g.taken))
		}
		wantStrings(t, data(t, m.sent()), "next")
	})
}

// What the dead letter will never take either is named to its request, and holds up nobody.
func TestWhatTheDeadLetterRefusesIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &grave{script: []error{&SendError{Refused: true, Code: event.EventTooLarge}}}
		f := start(t, config(1), &memory{answer: poisoned(t, "poison")}, Deps{DeadLetter: g})
		r := forward(t, f, batch(event.Delivered, "a", "poison", "b", "poison"))
		waitDelivered(t, r)
		if got := fmt.Sprint(r.Failed()); got != "[{1 backend_refused false} {3 backend_refused true}]" {
			t.Errorf("failed %s", got)
		}
	})
}

// A hard stop while a lane waits for its dead letter leaves nobody waiting.
func TestStopWhileADeadLetterIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &grave{script: slices.Repeat([]error{errors.New("full")}, 1000)}
		f, err := New(config(1), &memory{answer: poisoned(t, "poison")}, Deps{DeadLetter: g})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		r := forward(t, f, batch(event.Delivered, "poison"))
		<-time.After(20 * time.Second)
		stop()
		<-done
		wantCode(t, r.Wait(t.Context(), event.Delivered), event.Draining, "unknown")
	})
}
