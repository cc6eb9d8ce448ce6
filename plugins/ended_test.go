package plugins

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
)

// onLine is a log that calls a function for each line.
type onLine struct {
	slog.Handler
	line func(text string)
}

func (o onLine) Enabled(context.Context, slog.Level) bool      { return true }
func (o onLine) Handle(_ context.Context, r slog.Record) error { o.line(r.Message); return nil }
func (o onLine) WithAttrs([]slog.Attr) slog.Handler            { return o }
func (o onLine) WithGroup(string) slog.Handler                 { return o }

// A guest that computes is stopped when nobody waits for the result any more, as at a stop of the gateway, and not at its deadline:
// no event is blamed for it, and the next batch finds an instance.
func TestF61AGuestEndsWithItsRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h, err := New(Config{Instances: 1, Deadline: hardDeadline, Patient: true}, slog.New(onLine{slog.DiscardHandler, func(text string) {
		if text == "lnow" {
			cancel()
		}
	}}), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	c := chainOf(t, h, Step{Name: "s", Module: loadOf(t, h, scripted(false).bytes()), OnError: Policy{Action: DeadLetter}})
	b := batchOf("lnow", "w", "0")
	var p *event.Problem
	if err := c.Process(ctx, b); !errors.As(err, &p) || p.Code != event.Overloaded {
		t.Errorf("error %v", err)
	}
	for i := range b.Events {
		if b.Events[i].Verdict == event.DeadLettered {
			t.Errorf("event %d is blamed", i)
		}
	}
	if ctx.Err() == nil {
		t.Error("it was not working on the second event")
	}
	next := batchOf("kx")
	process(t, c, next)
	if got := outcomes(next); got != "accepted key=x\n" {
		t.Errorf("the next batch: %s", got)
	}
}

// Who waits for a seat leaves the line when nobody waits for the result.
func TestF61TheLineForASeatEndsWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSeats(1)
		s.wait(1, nil)
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan bool)
		go func() { got <- s.wait(time.Hour, ctx) }()
		synctest.Wait()
		began := time.Now()
		cancel()
		if <-got || time.Since(began) > 0 || s.asked() {
			t.Error("it got a seat that was taken, or still waits")
		}
		s.stand()
	})
}
