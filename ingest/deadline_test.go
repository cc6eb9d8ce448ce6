package ingest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := func() (*deadline, context.CancelFunc) {
			parent, cancel := context.WithCancel(context.Background())
			return &deadline{Context: parent, until: time.Now().Add(time.Minute)}, cancel
		}
		ended := func(p *deadline, want error) {
			t.Helper()
			<-p.Done()
			if err := p.Err(); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}

		p, cancel := begin()
		if at, ok := p.Deadline(); p.Err() != nil || !ok || time.Until(at) != time.Minute {
			t.Errorf("at first: %v, deadline %v", p.Err(), at)
		}
		at := time.Now()
		if ended(p, context.DeadlineExceeded); time.Since(at) != time.Minute {
			t.Errorf("ended after %v", time.Since(at))
		}
		cancel()

		p, cancel = begin()
		cancel()
		if !errors.Is(p.Err(), context.Canceled) {
			t.Errorf("server ended: %v", p.Err())
		}
		ended(p, context.Canceled)

		p, cancel = begin()
		defer cancel()
		child, stop := context.WithTimeout(p, time.Hour)
		defer stop()
		p.end()
		ended(p, context.Canceled)
		<-child.Done()

		p, cancel = begin()
		defer cancel()
		p.end() // nobody has waited before
		ended(p, context.Canceled)
	})
}

// What nobody waits for costs one allocation, the context itself.
func TestDeadlineIsFree(t *testing.T) {
	ctx := context.Background()
	var kept context.Context
	if n := testing.AllocsPerRun(100, func() {
		p := &deadline{Context: ctx, until: time.Now().Add(time.Minute)}
		kept = p
		if kept.Err() != nil {
			t.Error("ended")
		}
		p.end()
	}); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

// TestDeadlineEndsForWhoOnlyAsks: work that never waits, like a guest that is called again and again, asks Err.
func TestDeadlineEndsForWhoOnlyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deadline{Context: t.Context(), until: time.Now().Add(time.Minute)}
		if err := d.Err(); err != nil {
			t.Errorf("before the deadline: %v", err)
		}
		<-time.After(time.Minute)
		if err := d.Err(); err != context.DeadlineExceeded {
			t.Errorf("after the deadline: %v", err)
		}
	})
}
