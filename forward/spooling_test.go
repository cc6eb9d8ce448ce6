package forward

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/internal/budget"
	"github.com/headgate-io/headgate/internal/logfolder"
)

// spooled is a forwarder with a spool in a folder.
type spooledForwarder struct {
	*Forwarder
	spool *spool.Spool
	stop  func() error // orderly
	kill  func()       // what is not in the spool by now is lost
}

func startSpooled(t *testing.T, dir string, cfg Config, b Backend, deps Deps) *spooledForwarder {
	t.Helper()
	files, err := logfolder.Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := spool.New(spool.Config{SegmentBytes: 64 << 10}, spool.Deps{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	deps.Spool, deps.Backlog, deps.Room = s, s.Backlog, s.Room
	f, err := New(cfg, b, deps)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	forwarded, spooling := make(chan error, 1), make(chan error, 1)
	go func() { forwarded <- f.Run(ctx) }()
	go func() { spooling <- s.Run(ctx) }()
	r := &spooledForwarder{Forwarder: f, spool: s}
	r.stop = sync.OnceValue(func() error {
		f.Close()
		err := <-forwarded
		s.Close()
		return errors.Join(err, <-spooling)
	})
	r.kill = func() { cancel(); _ = r.stop() }
	t.Cleanup(r.kill)
	return r
}

func down(context.Context, *Run) error { return errors.New("down") }

func spoolConfig() Config {
	cfg := config(2)
	cfg.FrameEvents = 3
	return cfg
}

// A02, F15: with a backend that is down, durable is answered by the spool; later everything arrives once and in order.
func TestA02DurableWithADeadBackend(t *testing.T) {
	dir := t.TempDir()
	var up atomic.Bool
	m := &memory{answer: func(ctx context.Context, r *Run) error {
		if !up.Load() {
			return errors.New("down")
		}
		return nil
	}}
	f := startSpooled(t, dir, spoolConfig(), m, Deps{})
	var want []string
	for i := range 20 {
		b := batch(event.Durable, fmt.Sprint("a", i), fmt.Sprint("b", i))
		want = append(want, fmt.Sprint("a", i), fmt.Sprint("b", i))
		r := forward(t, f.Forwarder, b)
		if err := r.Wait(t.Context(), event.Durable); err != nil {
			t.Fatal(err)
		}
	}
	r := forward(t, f.Forwarder, batch(event.Delivered, "last"))
	if err := r.Wait(t.Context(), event.Durable); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wantCode(t, r.Wait(ended, event.Delivered), event.AckTimeout, "durable")
	up.Store(true)
	if err := r.Wait(t.Context(), event.Delivered); err != nil {
		t.Fatal(err)
	}
	wantStrings(t, data(t, m.sent()), append(want, "last")...)
	if err := f.stop(); err != nil {
		t.Fatal(err)
	}
	if st := f.spool.Stats(); st.Frames != 0 {
		t.Errorf("left in the spool: %+v", st)
	}
}

// P02: a forwarder whose backend is down stops at once, without an error, when the spool has everything; the next one
// delivers it, before what is new, under the same numbers.
func TestP02StopWithADeadBackendAndStartAgain(t *testing.T) {
	dir := t.TempDir()
	m := &memory{answer: down}
	f := startSpooled(t, dir, spoolConfig(), m, Deps{})
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprint("e", i))
		forward(t, f.Forwarder, batch(event.Accepted, want[i]))
	}
	waits := forward(t, f.Forwarder, batch(event.Delivered, "waits"))
	if err := f.stop(); err != nil {
		t.Fatal(err)
	}
	wantCode(t, waits.Wait(t.Context(), event.Delivered), event.AckTimeout, "durable")
	if c := f.lanes[0].snapshot(); c.spooled != 11 || c.abandoned != 0 {
		t.Errorf("counts %+v", c)
	}

	m = &memory{}
	f = startSpooled(t, dir, spoolConfig(), m, Deps{})
	waitDelivered(t, forward(t, f.Forwarder, batch(event.Delivered, "new")))
	wantStrings(t, data(t, m.sent()), append(want, "waits", "new")...)
	for i, e := range events(t, m.sent()) {
		if e.Number != uint64(i+1) {
			t.Errorf("event %d has number %d", i, e.Number)
		}
	}
	if c := f.lanes[0].snapshot(); c.accepted != 12 || c.delivered != 12 {
		t.Errorf("counts %+v", c)
	}
}

// B06: sealed frames of a dead backend leave memory once the spool has them, and come back in order.
func TestB06MemoryStaysBoundedWhileTheBackendIsDown(t *testing.T) {
	var up atomic.Bool
	end := make(chan struct{})
	m := &memory{answer: func(ctx context.Context, r *Run) error {
		if !up.Load() {
			return errors.New("down")
		}
		if strings.HasSuffix(string(r.Payload), "end\n") {
			close(end)
		}
		return nil
	}}
	limit := budget.New(60_000)
	cfg := spoolConfig()
	cfg.MaxRun = 2000
	cfg.Codec = "none"
	f := startSpooled(t, t.TempDir(), cfg, m, Deps{Budget: limit})
	var want []string
	filler := strings.Repeat("x", 1000)
	for i := range 300 {
		text := fmt.Sprint(i, filler)
		want = append(want, text)
		r := forward(t, f.Forwarder, batch(event.Durable, text))
		if err := r.Wait(t.Context(), event.Durable); err != nil {
			t.Fatal(err)
		}
	}
	if c := f.lanes[0].snapshot(); c.spooled < 200 || c.bytes > 60_000 {
		t.Errorf("%+v", c)
	}
	waits := forward(t, f.Forwarder, batch(event.Delivered, filler))
	wantCode(t, waits.Wait(t.Context(), event.Delivered), event.AckTimeout, "durable")
	up.Store(true)
	want = append(want, filler, "end")
	forward(t, f.Forwarder, batch(event.Durable, "end"))
	<-end
	if err := f.stop(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, run := range m.sent() {
		got = append(got, strings.Split(strings.TrimSuffix(string(run.Payload), "\n"), "\n")...)
	}
	wantStrings(t, got, want...)
	if limit.Held() != 0 {
		t.Errorf("%d bytes held, want 0", limit.Held())
	}
}

// F01: whatever was acknowledged as durable is delivered after the process is gone, in order, and nothing twice to a
// backend that knows what it has.
func TestF1KilledAgainAndAgain(t *testing.T) {
	dir := t.TempDir()
	m := &knowing{}
	var calls atomic.Int32
	m.answer = func(ctx context.Context, r *Run) error {
		if calls.Add(1)%3 != 0 {
			return errors.New("flapping")
		}
		return nil
	}
	acked := map[string]bool{}
	for life := range 8 {
		f := startSpooled(t, dir, spoolConfig(), m, Deps{})
		for i := range 20 {
			text := fmt.Sprintf("%d/%02d", life, i)
			r := forward(t, f.Forwarder, batch(event.Durable, text))
			if i%4 == 3 && r.Wait(t.Context(), event.Durable) == nil {
				for j := 0; j <= i; j++ {
					acked[fmt.Sprintf("%d/%02d", life, j)] = true
				}
			}
		}
		f.kill()
	}
	f := startSpooled(t, dir, spoolConfig(), m, Deps{})
	waitDelivered(t, forward(t, f.Forwarder, batch(event.Delivered, "~end")))
	_ = f.stop()
	last := ""
	for _, e := range events(t, m.sent()) {
		if string(e.Data) <= last {
			t.Errorf("%q after %q", e.Data, last)
		}
		last = string(e.Data)
		delete(acked, last)
	}
	if len(acked) > 0 {
		t.Errorf("acknowledged and lost: %v", acked)
	}
}

// F01: a run whose answer was lost with the process comes again under its id, whatever has come behind it.
func TestF1ARunThatComesAgainHasItsID(t *testing.T) {
	dir := t.TempDir()
	sent := make(chan string, 100)
	m := &memory{answer: func(_ context.Context, r *Run) error {
		sent <- r.ID
		return errors.New("the answer is lost")
	}}
	f := startSpooled(t, dir, spoolConfig(), m, Deps{})
	add := func(text string) {
		if err := forward(t, f.Forwarder, batch(event.Durable, text)).Wait(t.Context(), event.Durable); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 6 {
		add(fmt.Sprint(i))
	}
	id := <-sent
	f.kill()
	f = startSpooled(t, dir, spoolConfig(), m, Deps{}) // everything behind it is one long run now
	for len(sent) > 0 {
		<-sent
	}
	again := <-sent
	add("more")
	f.kill()
	m = &memory{}
	f = startSpooled(t, dir, spoolConfig(), m, Deps{})
	waitDelivered(t, forward(t, f.Forwarder, batch(event.Delivered, "end")))
	if runs := m.sent(); again != id || runs[0].ID != id {
		t.Errorf("the run %s came again as %s and %s", id, again, runs[0].ID)
	}
	wantStrings(t, data(t, m.sent()), "0", "1", "2", "3", "4", "5", "more", "end")
}

// A frame that an earlier process left is cut like any other when the backend refuses it, and its dead letter knows what
// the metadata knows.
func TestARecoveredFrameIsRefused(t *testing.T) {
	dir := t.TempDir()
	f := startSpooled(t, dir, spoolConfig(), &memory{answer: down}, Deps{})
	b := batch(event.Durable, "good", "poison", "better")
	b.ID, b.Producer = "the-request", []byte("somebody")
	if err := forward(t, f.Forwarder, b).Wait(t.Context(), event.Durable); err != nil {
		t.Fatal(err)
	}
	if err := f.stop(); err != nil {
		t.Fatal(err)
	}
	m := &memory{answer: func(_ context.Context, r *Run) error {
		for _, text := range data(t, []Run{*r}) {
			if text == "poison" {
				return &SendError{Refused: true, Err: errors.New("no")}
			}
		}
		return nil
	}}
	var letters []Refused
	f = startSpooled(t, dir, spoolConfig(), m, Deps{DeadLetter: buryFunc(func(r *Refused) { letters = append(letters, *r) })})
	waitDelivered(t, forward(t, f.Forwarder, batch(event.Delivered, "new")))
	wantStrings(t, data(t, m.sent()), "good", "better", "new")
	if len(letters) != 1 || string(letters[0].Event.Data) != "poison" || letters[0].Batch != "the-request" ||
		letters[0].Producer != "somebody" || letters[0].Index != -1 || letters[0].Number != 2 {
		t.Errorf("%+v", letters)
	}
}

type buryFunc func(*Refused)

func (f buryFunc) Bury(_ context.Context, r *Refused) error { f(r); return nil }

// knowing is a backend that remembers what it has of one lane, as a JetStream lane does.
type knowing struct {
	memory
	last atomic.Uint64
}

func (k *knowing) Resume(context.Context, int32) (uint64, error) { return k.last.Load(), nil }

func (k *knowing) Send(ctx context.Context, r *Run) error {
	switch last := k.last.Load(); {
	case r.Last <= last:
		return nil
	case r.First <= last:
		return &SendError{Refused: true, Reason: "overlap", Err: errors.New("other pieces")}
	}
	err := k.memory.Send(ctx, r)
	if err == nil {
		k.last.Store(r.Last)
	}
	return err
}

func TestForwardRefusesWhenTheSpoolIsFull(t *testing.T) {
	full := &event.Problem{Code: event.SpoolFull}
	f, err := New(config(1), &memory{}, Deps{Room: func() error { return full }})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Forward(t.Context(), batch(event.Accepted, "a"), f.NewReceipt(), nil)
	wantCode(t, err, event.SpoolFull, "")
}
