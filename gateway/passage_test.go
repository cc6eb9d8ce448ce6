package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/partitioner"
)

// scripted is a stream that finds ids at /id, over a backend in memory.
type scripted struct {
	*stream
	backend *forwardtest.Backend
	stop    func()
}

type tester interface {
	Fatal(args ...any)
	Error(args ...any)
}

// letterBox is a dead letter in memory, which refuses some.
type letterBox struct {
	mu   sync.Mutex
	kept []string
}

func (l *letterBox) Bury(_ context.Context, r *forward.Refused) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Number%3 == 0 {
		return &forward.SendError{Refused: true, Err: errors.New("no letter")}
	}
	l.kept = append(l.kept, string(r.Event.Data))
	return nil
}

// equalTable is the table of a stream of so many partitions.
func equalTable(t tester, partitions int) *partitioner.Table {
	table, err := partitioner.NewTable(partitioner.Secret{1}, partitioner.SlotsFor(partitions), partitioner.Equal(partitions))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func scriptStream(t tester, letters forward.DeadLetter) *scripted {
	const partitions = 3
	cfg := config.Stream{ID: config.ID{JSON: "/id"}, Partitions: config.Partitions{Max: partitions}}.WithDefaults()
	def, err := define(cfg, 1, managedByAPI)
	if err != nil {
		t.Fatal(err)
	}
	backend := &forwardtest.Backend{}
	f, err := forward.New(forward.Config{Stream: forwardtest.Stream, Gateway: forwardtest.Gateway, Partitions: partitions, FrameEvents: 7}, backend, forward.Deps{DeadLetter: letters})
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{name: forwardtest.Stream, partitioner: partitioner.New(equalTable(t, partitions), nil), forwarder: f, ids: newWindow(&def.config.ID)}
	s.current.Store(def)
	s.chain.Store(&link{})
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- f.Run(ctx) }()
	return &scripted{s, backend, sync.OnceFunc(func() {
		f.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		cancel()
	})}
}

// identified makes a batch as ingest would: of words "id data", with the span of the id.
func identified(level event.Level, words ...string) *event.Batch {
	b := &event.Batch{Stream: forwardtest.Stream, ID: "batch", Ack: level, Producer: []byte("p"), Syntax: event.JSON, NoNewlines: true}
	for _, w := range words {
		id, data, _ := bytes.Cut([]byte(w), []byte(" "))
		text := fmt.Appendf(nil, `{"id":"%s","data":"%s"}`, id, data)
		e := event.Event{Data: text, Key: id, HasKey: true}
		e.Fields[event.FieldID] = event.Span{Off: 6, Len: int32(len(id)) + 2}
		b.Events = append(b.Events, e)
	}
	return b
}

// copies counts what the backend holds by id.
func (s *scripted) copies(t testing.TB) map[string]int {
	all := map[string]int{}
	for _, text := range forwardtest.Events(t, s.backend.Runs()...) {
		id, _, _ := bytes.Cut([]byte(text[7:]), []byte(`"`))
		all[string(id)]++
	}
	return all
}

// refuseBad answers as a backend that refuses some events for good, and fails now and then for a while.
func refuseBad(t testing.TB) func(run *forward.Run) error {
	var mu sync.Mutex
	calls := 0
	return func(run *forward.Run) error {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls%5 == 0 {
			return errors.New("out for a moment")
		}
		if forwardtest.Contains(t, run, "bad") {
			return &forward.SendError{Refused: true, Code: event.BackendRefused, Err: errors.New("bad")}
		}
		return nil
	}
}

// Whatever is sent at once and again, with events that are filtered, refused before and refused by the backend: the five
// counts add up to the events that came, every id is stored at most once, and one that was called accepted or duplicate
// is stored.
func TestF46WhateverIsSentTwiceIsStoredOnceAndCounted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		letters := &letterBox{}
		s := scriptStream(rt, letters)
		defer s.stop()
		s.backend.Judge(refuseBad(t))
		batches := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) *event.Batch {
			level := rapid.SampledFrom([]event.Level{event.Accepted, event.Durable, event.Delivered}).Draw(rt, "level")
			b := identified(level, rapid.SliceOfN(rapid.StringMatching(`[a-h] (good|bad|good)`), 1, 20).Draw(rt, "events")...)
			for i := range b.Events {
				switch rapid.IntRange(0, 9).Draw(rt, "before") {
				case 0:
					b.Events[i].Verdict = event.Filtered
				case 1:
					b.Reject(i, event.PluginRejected, "")
				case 2:
					b.Events[i].Fields[event.FieldID] = event.Span{} // no id
				}
			}
			return b
		}), 2, 12).Draw(rt, "batches")

		var mu sync.Mutex
		safe, aside := map[string]bool{}, map[string]bool{}
		var senders sync.WaitGroup
		send := func(b *event.Batch) {
			if err := s.Accept(context.Background(), b); err != nil {
				t.Errorf("%v", err)
			}
			n := b.Counts()
			if n.Accepted+n.Filtered+n.Rejected+n.Duplicates+n.DeadLettered != len(b.Events) {
				t.Errorf("%d events: %+v", len(b.Events), n)
			}
			mu.Lock()
			defer mu.Unlock()
			for i := range b.Events {
				if e := &b.Events[i]; b.Ack > event.Accepted && len(e.ID) > 0 && (e.Verdict == event.Keep || e.Verdict == event.Duplicate) {
					safe[string(e.ID)] = true
				} else if e.Verdict == event.DeadLettered && len(e.ID) > 0 {
					aside[string(e.ID)] = true
				}
			}
		}
		const atOnce = 2
		for first := range atOnce {
			senders.Go(func() {
				for i := first; i < len(batches); i += atOnce {
					send(batches[i])
				}
			})
		}
		senders.Wait()
		s.stop()
		got := s.copies(t)
		named := map[string]int{}
		for _, text := range forwardtest.Events(t, s.backend.Runs()...) {
			named[text]++
		}
		for id := range safe {
			if got[id] == 0 {
				rt.Fatalf("%s was called safe and is not stored: %v", id, got)
			}
		}
		for id := range aside {
			if !strings.Contains(strings.Join(letters.kept, "\n"), fmt.Sprintf(`"id":%q`, id)) {
				rt.Fatalf("%s was called dead-lettered and is not: %v", id, letters.kept)
			}
		}
		checkOnce(rt, batches, named)
	})
}

// checkOnce compares the number of stored copies with the number of events that may be stored: each without an id, and
// one of each id.
func checkOnce(rt *rapid.T, batches []*event.Batch, stored map[string]int) {
	most := map[string]int{}
	ids := map[string]bool{}
	for _, b := range batches {
		for i := range b.Events {
			e := &b.Events[i]
			id := string(e.Key)
			switch {
			case e.Verdict == event.Filtered:
			case len(e.ID) == 0:
				most[id]++
			case !ids[id]:
				ids[id] = true
				most[id]++
			}
		}
	}
	for text, n := range stored {
		if id := text[7:8]; n > most[id] {
			rt.Fatalf("%d copies of %s, at most %d may be", n, text, most[id])
		}
	}
}

func isVerdict(t *testing.T, b *event.Batch, want ...event.Verdict) {
	t.Helper()
	for i := range want {
		if got := b.Events[i].Verdict; got != want[i] {
			t.Errorf("event %d is %v, want %v", i, got, want[i])
		}
	}
}

// An id is pending until its event is safe: another event with it waits, and what failed is not remembered.
func TestSecondEventWaitsForTheFirst(t *testing.T) {
	s := scriptStream(t, nil)
	defer s.stop()
	arrived, proceed := make(chan struct{}), make(chan struct{})
	s.backend.Script(forwardtest.Step{Arrived: arrived, After: proceed})
	s.backend.Judge(refuseBad(t))
	first, second := identified(event.Durable, "a good"), identified(event.Durable, "a good", "a good")
	done := make(chan error, 2)
	go func() { done <- s.Accept(t.Context(), first) }()
	<-arrived
	hasty := identified(event.Accepted, "a good")
	if err := s.Accept(t.Context(), hasty); err != nil { // in memory is what it asks
		t.Error(err)
	}
	isVerdict(t, hasty, event.Duplicate)
	impatient, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	wantCode(t, s.Accept(impatient, identified(event.Durable, "a good")), event.AckTimeout)
	go func() { done <- s.Accept(t.Context(), second) }()
	select {
	case err := <-done:
		t.Errorf("answered before the copy was safe: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(proceed)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	isVerdict(t, first, event.Keep)
	isVerdict(t, second, event.Duplicate, event.Duplicate)

	both := identified(event.Durable, "b bad", "b good", "c good", "c good")
	if err := s.Accept(t.Context(), both); err != nil {
		t.Error(err)
	}
	isVerdict(t, both, event.Rejected, event.Rejected, event.Keep, event.Duplicate)
	again := identified(event.Durable, "b good", "c good")
	if err := s.Accept(t.Context(), again); err != nil {
		t.Error(err)
	}
	isVerdict(t, again, event.Keep, event.Duplicate)
	if got := s.copies(t); got["a"] != 1 || got["b"] != 1 || got["c"] != 1 {
		t.Errorf("stored %v", got)
	}
}

// What was not known when a request ended is told later: the verdicts that it would have got.
func TestLateOutcome(t *testing.T) {
	s := scriptStream(t, nil)
	defer s.stop()
	arrived, proceed := make(chan struct{}), make(chan struct{})
	s.backend.Script(forwardtest.Step{Arrived: arrived, After: proceed})
	s.backend.Judge(refuseBad(t))
	before := identified(event.Accepted, "a good")
	if err := s.Accept(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	<-arrived
	b := identified(event.Durable, "a good", "b good", "c bad", "c good", "d filtered", "b good")
	b.Events[4].Verdict = event.Filtered
	type outcome struct {
		b   *event.Batch
		err error
	}
	late := make(chan outcome, 2)
	b.Late = func(b *event.Batch, err error) { late <- outcome{b, err} }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.Reached = func(event.Level) { cancel() } // its events are in the lanes
	err := s.Accept(ctx, b)
	if p, ok := errors.AsType[*event.Problem](err); !ok || p.Stored != "unknown" {
		t.Fatal(err)
	}
	if len(late) != 0 {
		t.Error("the outcome was told before it was known")
	}
	*b = event.Batch{} // its memory is given back
	close(proceed)
	got := <-late
	if got.err != nil || len(got.b.Events) != 6 {
		t.Fatalf("%v, %+v", got.err, got.b)
	}
	isVerdict(t, got.b, event.Duplicate, event.Keep, event.Rejected, event.Rejected, event.Filtered, event.Duplicate)
	if len(got.b.Errors) != 2 || got.b.ID != "batch" {
		t.Errorf("%+v", got.b)
	}
	s.stop()
	if len(late) != 0 {
		t.Error("the outcome was told twice")
	}
}

// Nothing is said of ids where a stream has none; a request for more than the window holds is refused whole.
func TestIDsAreBounded(t *testing.T) {
	s := scriptStream(t, nil)
	defer s.stop()
	s.ids.Resize(3, time.Minute)
	wantCode(t, s.Accept(t.Context(), identified(event.Durable, "a good", "b good", "c good", "d good")), event.Overloaded)
	ok := identified(event.Durable, "a good", "b good", "c good")
	if err := s.Accept(t.Context(), ok); err != nil {
		t.Error(err)
	}
	isVerdict(t, ok, event.Keep, event.Keep, event.Keep)
	if got := s.ids.State(time.Now()); got.Pending != 0 || got.Finished != 3 {
		t.Errorf("%+v", got)
	}
}

// Looking ids up costs a request a few allocations, an event none.
func TestIDsAllocateNothingPerEvent(t *testing.T) {
	s := scriptStream(t, nil)
	defer s.stop()
	const events = 1000
	b := identified(event.Durable, make([]string, events)...)
	b.HasIDs = true
	next := 0
	allocs := testing.AllocsPerRun(20, func() {
		for i := range b.Events {
			next++
			e := &b.Events[i]
			e.Verdict, e.ID = event.Keep, e.Data[:8]
			for at, n := 7, next; at >= 0; at, n = at-1, n/10 {
				e.ID[at] = '0' + byte(n%10)
			}
		}
		p := passage{receipt: s.forwarder.NewReceipt()}
		if err := s.claim(b, &p); err != nil {
			t.Fatal(err)
		}
		p.settle(nil, nil)
	})
	if allocs > events/10 { // the index and the entries grow now and then
		t.Errorf("%v allocations for %d events", allocs, events)
	}
	if got := s.ids.State(time.Now()); got.Finished != 21*events || got.Pending != 0 {
		t.Errorf("%+v", got)
	}
}

// BenchmarkAccept is 500 events on their way into the lanes, with ids that nobody had and without.
func BenchmarkAccept(b *testing.B) {
	for _, ids := range []bool{false, true} {
		b.Run(fmt.Sprint("ids=", ids), func(b *testing.B) {
			s := scriptStream(b, nil)
			defer s.stop()
			s.backend.Judge(func(*forward.Run) error { return nil })
			words := make([]string, 500)
			for i := range words {
				words[i] = fmt.Sprintf("id-%09d x", i)
			}
			batch := identified(event.Durable, words...)
			next := 0
			b.ReportAllocs()
			for b.Loop() {
				batch.HasIDs = false
				for i := range batch.Events {
					e := &batch.Events[i]
					e.Verdict, e.ID = event.Keep, nil
					if !ids {
						e.Fields[event.FieldID] = event.Span{}
						continue
					}
					next++
					for at, n := 18, next; at >= 10; at, n = at-1, n/10 {
						e.Data[at] = '0' + byte(n%10)
					}
				}
				if err := s.Accept(context.Background(), batch); err != nil {
					b.Fatal(err)
				}
				if n := batch.Counts(); n.Accepted != 500 {
					b.Fatalf("%+v", n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/500, "ns/event")
		})
	}
}
