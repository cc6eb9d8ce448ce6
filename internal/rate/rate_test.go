package rate

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const ms = Moment(time.Millisecond)

func TestSteps(t *testing.T) {
	l := &Limit{Events: 10, Bytes: 1000, Burst: 2 * time.Second} // holds 20 events, 2000 bytes
	var b bucket
	for i, step := range []struct {
		at   Moment
		ask  Ask
		wait time.Duration
	}{
		{1, Ask{Events: 20}, 0},                                            // all it holds
		{2, Ask{Events: 1}, 100*time.Millisecond - 1},                      // one comes each 100 ms
		{99 * ms, Ask{Events: 1}, time.Millisecond + 1},                    //
		{100*ms + 1, Ask{Events: 1}, 0},                                    // as was said
		{100*ms + 2, Ask{Events: 3}, 300*time.Millisecond - 1},             //
		{100*ms + 2, Ask{Events: 0, Bytes: 1}, 1},                          // refused in the same moment
		{100*ms + 3, Ask{Bytes: 2000, Room: 1}, 100*time.Millisecond - 2},  // no room for an event
		{400 * ms, Ask{Bytes: 1500, Room: 1}, 0},                           // which stays there
		{400*ms + 1, Ask{Events: 2, Bytes: 600}, 100*time.Millisecond - 1}, // bytes are what is missing
		{500 * ms, Ask{Events: 2, Bytes: 600}, 0},                          //
		{500*ms + 1, Ask{Events: 3, Again: 2000}, 2*time.Second - 1},       // bytes are there, but not for a second time
		{5000 * ms, Ask{Events: 50}, 0},                                    // more than it holds: a full one gives it, and owes 30
		{5001 * ms, Ask{Events: 1}, 3099 * time.Millisecond},               //
		{5001*ms + 1, Ask{Events: 50}, 4999*time.Millisecond - 1},          // until it is full again
	} {
		var wait time.Duration
		if b, wait = l.take(b, step.ask, step.at); wait != step.wait {
			t.Fatalf("step %d: %+v at %v: wait %v, want %v", i, step.ask, time.Duration(step.at), wait, step.wait)
		}
	}
}

// TestFractions: less than one event a second is a limit, too.
func TestFractions(t *testing.T) {
	l := &Limit{Events: 0.5, Burst: time.Second} // holds half an event: a full one gives one, and owes the rest
	if !l.Any() {
		t.Fatal("no limit")
	}
	var b bucket
	for i, step := range []struct {
		at   Moment
		wait time.Duration
	}{{1, 0}, {1000 * ms, time.Second + 1}, {2000*ms + 1, 0}, {4000 * ms, 1}, {4000*ms + 1, 0}} {
		var wait time.Duration
		if b, wait = l.take(b, Ask{Events: 1}, step.at); wait != step.wait {
			t.Fatalf("step %d at %v: wait %v, want %v", i, time.Duration(step.at), wait, step.wait)
		}
	}
	slow := &Limit{Events: 0.001, Burst: time.Hour}
	if b, wait := slow.take(bucket{}, Ask{Events: 1 << 62}, 1); wait != 0 || b.events < Moment(1<<60) {
		t.Errorf("a cost beyond all time: %v, %+v", wait, b)
	}
}

func TestNoLimit(t *testing.T) {
	l := &Limit{Bytes: 10, Burst: time.Second}
	b, wait := l.take(bucket{}, Ask{Events: 1 << 40}, 1)
	if wait != 0 || b.fullAt() > 1 {
		t.Errorf("events without a limit: wait %v, %+v", wait, b)
	}
	if (&Limit{Burst: time.Second}).Any() || !l.Any() {
		t.Error("Any")
	}
}

// plain is a bucket as one would write it down: a number that grows.
type plain struct {
	tokens float64
	at     Moment
}

// TestTableAgainstPlainBuckets: with as many names as fit, each gets exactly what a bucket of its own would give.
func TestTableAgainstPlainBuckets(t *testing.T) {
	l := &Limit{Events: 1000, Burst: 100 * time.Millisecond} // holds 100, one each millisecond: no rounding
	table := NewTable(4096, time.Now(), func() { t.Error("a bucket is forgotten") })
	random := rand.New(rand.NewPCG(1, 2))
	oracle := map[string]*plain{}
	now, granted, refused := ms, 0, 0
	for range 200_000 {
		now += Moment(random.IntN(3)) * ms
		name := fmt.Sprint(int(10 * random.ExpFloat64()))
		p := oracle[name]
		if p == nil {
			p = &plain{100, now}
			oracle[name] = p
		}
		p.tokens = min(100, p.tokens+float64((now-p.at)/ms))
		p.at = now
		n := 1 + random.IntN(40)
		want := p.tokens >= float64(n)
		wait := table.Take([]byte(name), l, Ask{Events: int64(n)}, now)
		switch {
		case want && wait == 0:
			p.tokens -= float64(n)
			granted++
		case !want && wait == time.Duration(float64(n)-p.tokens)*time.Millisecond:
			refused++
			now++ // the rest of the moment is refused
		default:
			t.Fatalf("%s asks for %d of %v: wait %v", name, n, p.tokens, wait)
		}
		now = (now + ms - 1) / ms * ms
	}
	if granted < 1000 || refused < 1000 {
		t.Errorf("%d granted, %d refused: that proves nothing", granted, refused)
	}
}

// TestFullBucketsNeedNoMemory: any number of names, as long as few are in use at a time.
func TestFullBucketsNeedNoMemory(t *testing.T) {
	l := &Limit{Events: 1000, Burst: time.Second}
	table := NewTable(4096, time.Now(), func() { t.Error("a bucket is forgotten") })
	now, heavy := ms, 0
	for i := range 100_000 { // each is full again after 1 ms
		now += ms / 100
		if table.Take(fmt.Append(nil, i), l, Ask{Events: 1}, now) != 0 {
			t.Fatal("a new name is refused")
		}
		if i%100 == 0 && table.Take([]byte("heavy"), l, Ask{Events: 1000}, now) == 0 {
			heavy++ // holds 1000, and gets 1 a millisecond
		}
	}
	if heavy != 1 { // the second thousand takes a second
		t.Errorf("the bucket in use gave %d times 1000 events in a second", heavy)
	}
}

// TestFloodForgetsTheLeast: with more names in use than fit, those who took little are forgotten, and no one is refused
// who did not take too much.
func TestFloodForgetsTheLeast(t *testing.T) {
	l := &Limit{Events: 10, Burst: 10 * time.Second}
	forgotten := 0
	table := NewTable(64, time.Now(), func() { forgotten++ })
	if len(table.sets)*ways != 64 {
		t.Fatalf("%d sets", len(table.sets))
	}
	if table.Take([]byte("heavy"), l, Ask{Events: 100}, ms) != 0 {
		t.Fatal("a full bucket gives nothing")
	}
	for i := range 10_000 {
		if table.Take(fmt.Append(nil, i), l, Ask{Events: 1}, ms+1) != 0 {
			t.Fatal("a new name is refused")
		}
	}
	if wait := table.Take([]byte("heavy"), l, Ask{Events: 1}, ms+2); wait == 0 {
		t.Error("the one who took most was forgotten")
	}
	if forgotten < 10_000-64 || forgotten > 10_000 {
		t.Errorf("%d are forgotten", forgotten)
	}
}

func TestTakersShareABucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Limit{Events: 1000, Burst: time.Second}
		table := NewTable(16, time.Now(), func() {})
		var granted atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 3000 {
					if table.Take([]byte("one"), l, Ask{Events: 1}, table.Moment(time.Now())) == 0 {
						granted.Add(1)
					}
					<-time.After(time.Millisecond)
				}
			})
		}
		all.Wait()
		// 1000 at the start, then 1000 a second for 3 s; the last look is a millisecond before.
		if n := granted.Load(); n < 3980 || n > 4000 {
			t.Errorf("%d are granted in 3 s, want 4000", n)
		}
	})
}

func TestTakeAllocatesNothing(t *testing.T) {
	l := &Limit{Events: 10, Bytes: 1000, Burst: time.Second}
	table := NewTable(1024, time.Now(), func() {})
	name, now := make([]byte, 12), ms
	if n := testing.AllocsPerRun(1000, func() {
		name[0]++
		now++
		table.Take(name, l, Ask{Events: 1, Bytes: 100}, now)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTake(b *testing.B) {
	for _, keys := range []int{100, 50_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			l := &Limit{Events: 1000, Bytes: 1 << 20, Burst: 2 * time.Second}
			table := NewTable(65_536, time.Now(), func() {})
			names := make([][]byte, keys)
			for i := range names {
				names[i] = fmt.Appendf(nil, "10.%d.%d.%d", i>>16, i>>8&255, i&255)
			}
			now, i := ms, 0
			b.ReportAllocs()
			for b.Loop() {
				now += 1000
				i = (i + 7919) % keys
				table.Take(names[i], l, Ask{Events: 1, Bytes: 300}, now)
			}
		})
	}
}
