package forward

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/headgate-io/headgate/internal/race"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/budget"
	"github.com/headgate-io/headgate/sdk/consume"
)

// Producers write at once, with events of every kind; afterwards each event is in exactly one frame with all
// that was known of it, numbers have no gap, and what a producer sent to a lane is there in its order.
func TestEveryEventIsInOneFrameAndInOrder(t *testing.T) {
	const producers, batches, partitions = 4, 60, 5
	for _, codec := range []string{"zstd", "s2"} {
		t.Run(codec, func(t *testing.T) {
			m := &memory{}
			cfg := config(partitions)
			cfg.Codec, cfg.FrameBytes, cfg.FrameEvents, cfg.MaxRun = codec, 8<<10, 100, 16<<10
			f := start(t, cfg, m, Deps{})
			var all sync.WaitGroup
			for p := range producers {
				all.Go(func() { produce(t, f, p, batches, partitions) })
			}
			all.Wait()
			checkProduced(t, m.sent(), producers, batches, partitions)
		})
	}
}

const eventsOfBatch = 41

func produce(t *testing.T, f *Forwarder, producer, batches, partitions int) {
	var last *Receipt
	for n := range batches {
		last = forward(t, f, mixed(producer, n, partitions))
		if n%10 == 0 {
			waitDelivered(t, last)
		}
	}
	waitDelivered(t, last)
}

// mixed is a batch in which nothing is like in the next event; only (producer, n) decides what.
func mixed(producer, n, partitions int) *event.Batch {
	rnd := rand.New(rand.NewPCG(uint64(producer), uint64(n)))
	b := &event.Batch{ID: fmt.Sprintf("b%d-%d", producer, n), Ack: event.Level(1 + rnd.IntN(3)), TableVersion: 7, Arrived: int64(1000 + n),
		Producer: fmt.Appendf(nil, "producer-%d", producer), TraceParent: fmt.Appendf(nil, "trace-%d-%d", producer, n)}
	if n%2 == 0 {
		b.TraceState, b.RequestID = fmt.Appendf(nil, "state-%d", n), fmt.Sprint("request-", producer)
	}
	for i := range eventsOfBatch {
		e := event.Event{Slot: event.NoSlot, Child: event.NoSlot, Partition: int32(rnd.IntN(partitions))}
		e.Data = fmt.Appendf(nil, "%d/%d/%d %0*d", producer, n, i, rnd.IntN(300), i)
		switch rnd.IntN(12) {
		case 0:
			e.Data = append(e.Data, "\nsecond line"...)
		case 1:
			e.ID = fmt.Appendf(nil, "id-%d-%d", n, i)
		case 2:
			e.Time = int64(5000 + i)
		case 3:
			e.Attrs = []event.Attr{{Name: []byte("type"), Value: fmt.Appendf(nil, "t%d", i%3)}, {Name: []byte("subject"), Value: []byte("s")}}
		}
		if k := rnd.IntN(20); k > 0 {
			e.HasKey, e.Key, e.Hash = true, fmt.Appendf(nil, "key-%d", k), uint64(k%3) // equal hashes of unequal keys
			e.Slot = int32(k%4*8 + int(e.Partition))
			e.Epoch = uint32(e.Slot)
			if k == 3 {
				e.Key = []byte{}
			}
			if k > 15 {
				e.Child, e.Epoch = e.Slot+1024, uint32(k%4+1)
			}
		}
		b.Events = append(b.Events, e)
	}
	return b
}

func checkProduced(t *testing.T, runs []Run, producers, batches, partitions int) {
	t.Helper()
	next := make([]uint64, partitions)
	at := map[[2]int]int{} // producer, partition -> place of its last event
	sum := 0
	made := map[[2]int]*event.Batch{}
	for _, e := range events(t, runs) {
		next[e.Partition]++
		if e.Number != next[e.Partition] {
			t.Fatalf("partition %d: number %d comes in place of %d", e.Partition, e.Number, next[e.Partition])
		}
		var producer, n, i int
		if _, err := fmt.Sscanf(string(e.Data), "%d/%d/%d ", &producer, &n, &i); err != nil {
			t.Fatalf("event %q: %v", e.Data, err)
		}
		lane, place := [2]int{producer, int(e.Partition)}, n*eventsOfBatch+i+1
		if place <= at[lane] {
			t.Fatalf("event %q comes again or too late", e.Data)
		}
		at[lane] = place
		sum++
		b := made[[2]int{producer, n}]
		if b == nil {
			b = mixed(producer, n, partitions)
			made[[2]int{producer, n}] = b
		}
		checkEvent(t, &e, b, &b.Events[i])
	}
	if want := producers * batches * eventsOfBatch; sum != want {
		t.Errorf("%d events arrived, want %d", sum, want)
	}
}

func checkEvent(t *testing.T, got *consume.Event, b *event.Batch, want *event.Event) {
	t.Helper()
	when := want.Time
	if when == 0 {
		when = b.Arrived
	}
	var attrs []consume.Attr
	for _, a := range want.Attrs {
		attrs = append(attrs, consume.Attr(a))
	}
	format := "data %q key %q %v id %q slot %d child %d epoch %d time %d source %q trace %q %q request %q batch %q attrs %q partition %d stream %s gateway %s"
	g := fmt.Sprintf(format, got.Data, got.Key, got.HasKey, got.ID, got.Slot, got.Child, got.Epoch, got.Time, got.Source, got.TraceParent, got.TraceState, got.RequestID, got.BatchID, got.Attrs,
		got.Partition, got.Stream, got.Gateway)
	w := fmt.Sprintf(format, want.Data, want.Key, want.HasKey, want.ID, want.Slot, want.Child, want.Epoch, when, b.Producer, b.TraceParent, b.TraceState, b.RequestID, b.ID, attrs,
		want.Partition, "web", "0011223344556677")
	if g != w {
		t.Fatalf("got  %s\nwant %s", g, w)
	}
}

func TestOnlyKeptOrNamedEventsAreTaken(t *testing.T) {
	m := &memory{}
	f := start(t, config(1), m, Deps{})
	b := batch(event.Delivered, "a", "b", "c", "d")
	b.Events[1].Verdict = event.Filtered
	waitDelivered(t, forward(t, f, b))
	r := f.NewReceipt()
	if _, err := f.Forward(t.Context(), b, r, []int32{3, 0}); err != nil {
		t.Fatal(err)
	}
	waitDelivered(t, r)
	wantStrings(t, data(t, m.sent()), "a", "c", "d", "d", "a")
}

func TestNothingToTake(t *testing.T) {
	f := start(t, config(1), &memory{}, Deps{})
	waitDelivered(t, forward(t, f, batch(event.Delivered)))
}

func TestFramingChangesWithTheFirstNewline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		f := start(t, config(1), m, Deps{})
		waitDelivered(t, forward(t, f, batch(event.Delivered, "a", "b", "c\nc", "d")))
		waitDelivered(t, forward(t, f, batch(event.Delivered, "e")))
		runs := m.sent()
		wantStrings(t, data(t, runs), "a", "b", "c\nc", "d", "e")
		var types []string
		for _, run := range runs {
			types = append(types, run.ContentType)
		}
		wantStrings(t, types, "application/x-ndjson", "application/vnd.headgate.events", "application/x-ndjson")
	})
}

// A batch that doesn't fit leaves nothing behind in any lane.
func TestBudgetIsAllOrNothing(t *testing.T) {
	m := &memory{}
	limit := budget.New(1000)
	f := start(t, config(2), m, Deps{Budget: limit})
	if !limit.Reserve(500) {
		t.Fatal("no room for 500 bytes of 1000")
	}
	b := batch(event.Delivered, "a", string(make([]byte, 600)))
	b.Events[1].Partition = 1
	r := f.NewReceipt()
	_, err := f.Forward(t.Context(), b, r, nil)
	wantCode(t, err, event.Overloaded, "")
	if limit.Held() != 500 {
		t.Errorf("%d bytes held after the refusal, want 500", limit.Held())
	}
	waitDelivered(t, r) // for nothing
	limit.Release(500)
	waitDelivered(t, forward(t, f, b))
	if limit.Held() != 0 {
		t.Errorf("%d bytes held after delivery, want 0", limit.Held())
	}
	if got := len(data(t, m.sent())); got != 2 {
		t.Errorf("%d events delivered, want 2", got)
	}
}

// What a request says of itself is kept in each lane that gets events of it, and paid for.
func TestWhatARequestSaysIsPaidFor(t *testing.T) {
	limit := budget.New(1000)
	f := start(t, config(2), &memory{}, Deps{Budget: limit})
	b := batch(event.Delivered, "a", "b")
	b.Producer = make([]byte, 600)
	waitDelivered(t, forward(t, f, b)) // both in one lane
	b.Events[1].Partition = 1
	if !limit.Reserve(10) { // what is alone may be larger than the budget
		t.Fatal("no room for 10 bytes")
	}
	_, err := f.Forward(t.Context(), b, f.NewReceipt(), nil)
	wantCode(t, err, event.Overloaded, "")
	limit.Release(10)

	refuseOlder(t, f, 1, 9) // one lane takes its event, the other does not
	b.Producer = make([]byte, 400)
	r := f.NewReceipt()
	if stale, err := f.Forward(t.Context(), b, r, nil); len(stale) != 1 || err != nil {
		t.Fatalf("stale %v, %v", stale, err)
	}
	b.TableVersion = 9
	if stale, err := f.Forward(t.Context(), b, r, []int32{1}); len(stale) != 0 || err != nil {
		t.Fatalf("stale %v, %v", stale, err)
	}
	waitDelivered(t, r)
	if limit.Held() != 0 {
		t.Errorf("%d bytes held, want 0", limit.Held())
	}
}

func TestStaleEventsComeBackAndKeepTheirMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		limit := budget.New(200)
		f := start(t, config(2), m, Deps{Budget: limit})
		forward(t, f, batch(event.Accepted, "old"))
		refuseOlder(t, f, 0, 2)
		synctest.Wait() // what old tables brought is sealed at once, whatever its linger
		wantStrings(t, data(t, m.sent()), "old")

		b := batch(event.Delivered, "a", "b", "c")
		b.Events[1].Partition = 1
		r := f.NewReceipt()
		stale, err := f.Forward(t.Context(), b, r, nil)
		if fmt.Sprint(stale) != "[0 2]" || err != nil {
			t.Fatalf("stale %v, %v; want [0 2]", stale, err)
		}
		if !limit.Reserve(200 - limit.Held()) {
			t.Fatal("can't fill the budget")
		}
		b.TableVersion = 2 // assigned again
		if stale, err := f.Forward(t.Context(), b, r, stale); err != nil || stale != nil {
			t.Fatalf("forwarded again: stale %v, %v", stale, err)
		}
		waitDelivered(t, r)
		got := data(t, m.sent())
		if len(got) != 4 {
			t.Errorf("delivered %q, want each of old, a, b, c once", got)
		}
	})
}

func TestStaleEventsThatAreNotForwardedAgainGiveTheirMemoryBack(t *testing.T) {
	limit := budget.New(1000)
	f := start(t, config(1), &memory{}, Deps{Budget: limit})
	refuseOlder(t, f, 0, 5)
	r := f.NewReceipt()
	stale, err := f.Forward(t.Context(), batch(event.Delivered, "a"), r, nil)
	if len(stale) != 1 || err != nil || limit.Held() == 0 {
		t.Fatalf("stale %v, %v, %d bytes held", stale, err, limit.Held())
	}
	waitDelivered(t, r)
	if limit.Held() != 0 {
		t.Errorf("%d bytes held, want 0", limit.Held())
	}
}

// No frame mixes events that were routed by different tables: a slot has one epoch in it.
func TestAnotherTableIsAnotherFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		f := start(t, config(1), m, Deps{})
		for version := range uint64(3) {
			b := batch(event.Accepted, fmt.Sprint(version))
			b.TableVersion = version
			b.Events[0].HasKey, b.Events[0].Slot, b.Events[0].Epoch = true, 1, uint32(version)
			forward(t, f, b)
		}
		waitDelivered(t, forward(t, f, batch(event.Delivered, "last")))
		for i, e := range events(t, m.sent())[:3] {
			if e.Epoch != uint32(i) {
				t.Errorf("event %d has epoch %d", i, e.Epoch)
			}
		}
	})
}

func TestForwardAllocatesNothingPerEvent(t *testing.T) {
	if race.Enabled {
		t.Skip("pools forget under the race detector")
	}
	limit := budget.New(256 << 20)
	f := start(t, config(16), discard{}, Deps{Budget: limit})
	rnd := rand.New(rand.NewPCG(1, 2))
	batches := []*event.Batch{lines(rnd, 500, 16, 200), lines(rnd, 500, 16, 1<<20)}
	n := 0
	do := func() {
		r := f.NewReceipt()
		if _, err := f.Forward(t.Context(), batches[n%2], r, nil); err != nil {
			t.Fatal(err)
		}
		for n++; limit.Held() > 32<<20; {
			runtime.Gosched()
		}
	}
	for range 500 {
		do()
	}
	if per := testing.AllocsPerRun(2000, do); per > 40 {
		t.Errorf("%.0f allocations for 500 events in 16 lanes, want far less than one an event", per)
	}
}
