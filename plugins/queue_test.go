package plugins

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
)

// lines keeps what guests log.
type lines struct {
	slog.Handler
	mu  sync.Mutex
	all []string
}

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r.Message)
	return nil
}
func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }

// queued starts the batches while all instances are taken, each once the one before waits, and returns what their events
// logged in the order of their calls.
func queued(t *testing.T, batches ...*event.Batch) string {
	t.Helper()
	said := &lines{}
	h, err := New(Config{Instances: 1}, slog.New(said), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	c := chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, scripted(false).bytes())})
	pool := c.places[0].active.pool
	in, err := pool.take(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i, b := range batches {
		all.Go(func() { process(t, c, b) })
		for int(pool.queue.length.Load()) <= i {
			<-time.After(time.Millisecond)
		}
	}
	pool.give(in)
	all.Wait()
	return strings.Join(said.all, "")
}

// slow is a batch of that many calls, each of which logs the caller's letter.
func slow(caller string, calls int) *event.Batch {
	b := batchOf(slices.Repeat([]string{"0"}, 256*calls)...)
	for i := range calls {
		b.Events[256*i].Data = []byte("l" + caller)
	}
	b.Owner = ownerOf(caller)
	return b
}

// A caller's long batches, whose events are slow, hold an instance for one call when others wait for it, and its many
// requests stand behind one of somebody else who has had less.
func TestInstancesAreSharedFairlyAmongCallers(t *testing.T) {
	if got := queued(t, slow("A", 5), slow("B", 1)); got != "lAlBlAlAlAlA" {
		t.Errorf("a long request and a short one: %s", got)
	}
	requests := []*event.Batch{}
	for range 10 {
		requests = append(requests, slow("A", 1))
	}
	got := queued(t, append(requests, slow("B", 1), slow("C", 1))...)
	if !strings.HasPrefix(got, "lAlBlC") || strings.Count(got, "lA") != 10 {
		t.Errorf("ten requests of one, and one each of two others: %s", got)
	}
	if got := queued(t, slow("A", 3), slow("A", 1)); got != "lAlAlAlA" {
		t.Errorf("one caller: %s", got)
	}
}

// Who has waited in vain is out of the queue, and what it was given meanwhile goes to the next one.
func TestWhoGivesUpLeavesTheQueue(t *testing.T) {
	var q queue
	a, b := q.join(1), q.join(2)
	if !q.leave(a) || q.leave(a) || q.next() != b || q.next() != nil || q.length.Load() != 0 || q.used != nil {
		t.Errorf("%+v", &q)
	}
}

// A caller who comes later has used as much as the one who was served last: it does not get all that others had before.
func TestWhoComesLaterHasNoCredit(t *testing.T) {
	var q queue
	q.join(1)
	q.join(1)
	q.join(1)
	q.spend(1, time.Second)
	q.next()
	q.join(2)
	if !q.spend(2, time.Millisecond) || q.used[2] != time.Second+time.Millisecond {
		t.Errorf("%v", q.used)
	}
	if w := q.next(); w.caller != 1 {
		t.Errorf("caller %d is served", w.caller)
	}
}
