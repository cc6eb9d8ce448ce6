package partitioner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/race"
)

func sum(all []float64) (n float64) {
	for _, w := range all {
		n += w
	}
	return n
}

func TestMeterCountsWhatIsAssigned(t *testing.T) {
	table := newTable(t, Equal(4))
	hi, lo := Hash(secret, []byte("hot"))
	table = must(t)(table.Split(hi, lo, []int32{0, 1}))
	m := NewMeter(CountersFor(4))
	p := New(table, m)
	b := keyed("hot", "a", "hot", "b")
	b.Events[3].Verdict = event.Filtered
	b.Events = append(b.Events, event.Event{Data: []byte("no key")})
	m.Want([][2]uint64{{hi, lo}})
	p.Assign(b, nil)
	p.Assign(b, []int32{0}) // again, by a newer table: it was counted
	r := m.Read(table, Tick{Elapsed: time.Second})
	weight := float64(len("data") + EventCost)
	if len(r.Load.Heavy.Keys) != 2 || r.Load.Heavy.Keys[0].Hi != hi || math.Abs(sum(r.Load.Slots)-weight) > 1e-9 {
		t.Errorf("%+v", r.Load.Heavy)
	}
	if got := r.Load.Children[b.Events[0].Child]; got != 2*weight || len(r.Load.Children) != 1 {
		t.Errorf("children %v", r.Load.Children)
	}
	if got := sum(r.Partitions); got != 3*weight+7 {
		t.Errorf("partitions %v", r.Partitions)
	}
	if n := m.Names(); len(n) != 1 || string(n[0].Key) != "hot" || n[0].Size != 3 || len(m.Names()) != 0 {
		t.Errorf("names %v", n)
	}
	for !m.Read(table, Tick{Elapsed: 10 * time.Second}).Idle {
	}
}

// Rates are what comes in, however short the memory is that a stream's hold asks for.
func TestRatesAreTrueWithAnyHold(t *testing.T) {
	for _, hold := range []time.Duration{time.Millisecond, time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, 0} {
		table := newTable(t, Equal(4))
		m := NewMeter(CountersFor(4))
		p := New(table, m)
		var r Reading
		for range 200 { // 20 s
			p.Assign(keyed("hot", "a", "hot", "b"), nil)
			r = m.Read(table, Tick{Elapsed: 100 * time.Millisecond, Hold: hold})
		}
		k, want := r.Load.Heavy.Keys[0], 20*float64(len("data")+EventCost)
		for name, got := range map[string]float64{"fast": k.Fast, "lower": k.Lower, "upper": k.Upper, "total": r.Load.Heavy.Total / 2} {
			if math.Abs(got/want-1) > 0.01 {
				t.Errorf("hold %v: %s is %.0f, want %.0f", hold, name, got, want)
			}
		}
	}
}

// Spread keys go to the least loaded of their partitions, by what this gateway has sent.
func TestSpreadKeyIsEvenedOutAsItIsAssigned(t *testing.T) {
	hi, lo := Hash(secret, []byte("hot"))
	table := must(t)(newTable(t, Equal(5)).SplitOn(hi, lo, []int32{0, 1, 2, 3, 4}, SplitTerms{Spread: true}))
	m := NewMeter(256)
	p := New(table, m)
	b := &event.Batch{}
	for i := range 1000 {
		key := "hot"
		if i%4 == 0 {
			key = "cold"
		}
		b.Events = append(b.Events, event.Event{Data: []byte("data"), Key: []byte(key), HasKey: true})
	}
	for range 10 {
		p.Assign(b, nil)
	}
	r := m.Read(table, Tick{Elapsed: time.Second})
	if worst, mean := slices.Max(r.Partitions), sum(r.Partitions)/5; worst > 1.3*mean { // cold alone is 1.25
		t.Errorf("%v", r.Partitions)
	}
}

func TestMetersCountConcurrently(t *testing.T) {
	table := newTable(t, Equal(16))
	m := NewMeter(CountersFor(16))
	p := New(table, m)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			b := keyed("hot", fmt.Sprint("key ", g), "hot")
			for range 500 {
				p.Assign(b, nil)
			}
		})
	}
	all.Wait()
	r := m.Read(table, Tick{Elapsed: time.Second})
	if got, want := sum(r.Partitions), 8*500*3*float64(4+EventCost); got != want {
		t.Errorf("counted %v of %v", got, want)
	}
	if k := r.Load.Heavy.Keys[0]; k.Lower < 0.66*r.Load.Heavy.Total {
		t.Errorf("hottest %+v of %v", k, r.Load.Heavy.Total)
	}
}

func TestMeteredAssignDoesNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	p := New(newTable(t, Equal(16)), NewMeter(256))
	b := &event.Batch{}
	for i := range 500 {
		b.Events = append(b.Events, event.Event{Data: []byte("data"), Key: fmt.Appendf(nil, "key %d", i*i%377), HasKey: true})
	}
	p.Assign(b, nil)
	if n := testing.AllocsPerRun(100, func() { p.Assign(b, nil) }); n > 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

// BenchmarkMeteredAssign is what assigning costs an event, without counting and with it; keys by Zipf's law, or all alike.
func BenchmarkMeteredAssign(b *testing.B) {
	for _, z := range []float64{0, 1.1, 1.4} {
		for _, metered := range []bool{false, true} {
			b.Run(fmt.Sprintf("z=%v/counted=%v", z, metered), func(b *testing.B) {
				table := newTable(b, Equal(16))
				var m *Meter
				if metered {
					m = NewMeter(CountersFor(16))
				}
				p, batches := New(table, m), zipfBatches(z)
				b.ReportAllocs()
				before := cpuTime()
				b.ResetTimer()
				for i := 0; b.Loop(); i++ {
					p.Assign(batches[i%len(batches)], nil)
				}
				b.ReportMetric(float64(cpuTime()-before)/float64(b.N*500), "cpu-ns/event")
			})
		}
	}
}

func zipfBatches(z float64) []*event.Batch {
	const keys = 50_000
	rnd := rand.New(rand.NewPCG(1, 2))
	next := func() uint64 { return rnd.Uint64N(keys) }
	if z > 1 {
		next = rand.NewZipf(rnd, z, 1, keys-1).Uint64
	}
	batches := make([]*event.Batch, 256)
	for i := range batches {
		batches[i] = &event.Batch{}
		for range 500 {
			n := next()
			batches[i].Events = append(batches[i].Events, event.Event{Data: make([]byte, 255), HasKey: true, Key: fmt.Appendf(nil, "10.%d.%d.%d", n>>16, n>>8&255, n&255)})
		}
	}
	return batches
}

// cpuTime is the processor time of this process: beside others on the machine only that counts.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
