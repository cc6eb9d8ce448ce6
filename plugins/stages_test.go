package plugins

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/leaks"
	"github.com/headgate-io/headgate/internal/race"
)

// variant is the scripted guest with another digest, in which the command from does what to does.
func variant(from, to byte) wasmModule {
	m := scripted(false)
	guest := &m.functions[fnProcess-fnVersion]
	guest.code = strings.Replace(guest.code, get(lcmd)+i32(int32(to))+eq+if_,
		get(lcmd)+i32(int32(to))+eq+get(lcmd)+i32(int32(from))+eq+"\x72" /* or */ +if_, 1)
	guest.code = strings.Replace(guest.code, get(lcmd)+i32(int32(from))+eq+if_, i32(0)+if_, 1)
	return m
}

// settled waits until all samples are compared, and returns the only comparison.
func settled(t *testing.T, c *Chain) Comparison {
	t.Helper()
	for end := time.After(2 * time.Minute); ; {
		waiting := int64(0)
		for _, p := range c.places {
			if p.tried != nil {
				waiting += p.tried.watch.waiting.Load()
			}
		}
		if waiting == 0 {
			return c.Comparisons()[0]
		}
		select {
		case <-time.After(time.Millisecond):
		case <-end:
			t.Fatalf("%d bytes are still not compared", waiting)
		}
	}
}

// A shadow changes nothing of what the active version makes of the events, and what it would have made is compared.
func TestAShadowIsComparedAndChangesNothing(t *testing.T) {
	defer leaks.None(t)
	h := hostOf(t, Config{Instances: 1})
	active := loadOf(t, h, scripted(false).bytes())
	alone := chainOf(t, h, Step{Name: "p", Module: active})
	lines := []string{"ka", "kb", "d", "vnew", "t", "0", "e", "r", "kc"}
	want := batchOf(lines...)
	process(t, alone, want)
	for _, tt := range []struct {
		from, to            byte
		verdict, key, value int64
		failed              int64
		what                string
	}{
		{'y', 'k', 0, 0, 0, 1, "the same"},
		{'k', 'e', 0, 3, 0, 1, "the empty key for three"},
		{'d', 'e', 1, 0, 0, 1, "no drop"},
		{'v', '0', 0, 0, 1, 1, "no other bytes"},
		{'0', 't', 0, 0, 0, 2, "a trap"},
		{'t', 'k', 1, 0, 0, 0, "no trap"},
		{'r', 'x', 0, 0, 0, 2, "an exit"},
	} {
		m := variant(tt.from, tt.to)
		m.custom = string(tt.from)
		c := chainOf(t, h, Step{Name: "p", Module: active}, Step{Name: "p", Module: loadOf(t, h, m.bytes()), Stage: Shadow})
		got := batchOf(lines...)
		got.Owner = 7
		process(t, c, got)
		if outcomes(got) != outcomes(want) || len(got.Errors) != len(want.Errors) || string(got.Events[3].Data) != "new" || got.Chain != active.Digest {
			t.Errorf("%s: the shadow is seen: %s by %s", tt.what, outcomes(got), got.Chain)
		}
		n := settled(t, c)
		if n.Stage != Shadow || n.Compared != int64(len(lines)) || n.Skipped != 0 || n.Verdicts != tt.verdict || n.Keys != tt.key || n.Values != tt.value || n.Failed != tt.failed {
			t.Errorf("%s: %+v", tt.what, n)
		}
		if n.Nanoseconds <= 0 || n.ActiveNanoseconds <= 0 {
			t.Errorf("%s: no cost: %+v", tt.what, n)
		}
		closed(t, c.Retire())
	}
	closed(t, alone.Retire())
}

// A shadow sees what the plugins before made of the events, with their keys, and none of what they dropped.
func TestAShadowSeesWhatItsPlaceInTheChainSees(t *testing.T) {
	h := hostOf(t, Config{Instances: 1})
	m := loadOf(t, h, scripted(false).bytes())
	c := chainOf(t, h, Step{Name: "first", Module: m}, Step{Name: "second", Module: m, Stage: Shadow})
	b := batchOf("vd", "vkx", "d", "kd", "v0")
	b.Events[4].Key, b.Events[4].HasKey = []byte("earlier"), true
	process(t, c, b)
	if got := outcomes(b); got != "accepted\naccepted\nfiltered\naccepted key=d\naccepted key=earlier\n" {
		t.Errorf("got %s", got)
	}
	// Of four: vd became d and is dropped by the shadow, kx gets a key, kd has the same key again, 0 leaves its key.
	if n := settled(t, c); n.Compared != 4 || n.Verdicts != 1 || n.Keys != 1 || n.Failed != 0 || n.ActiveNanoseconds != 0 {
		t.Errorf("%+v", n)
	}
}

// What shadows cost is bounded: an endless one is called for a moment and no more, its traps use up nothing of the version
// that is in force, even when that is the same, and no batch waits for it.
func TestAShadowThatIsTooSlowIsSkipped(t *testing.T) {
	h := strictHostOf(t, Config{Instances: 1})
	m := scripted(false)
	guest := &m.functions[fnProcess-fnVersion]
	guest.code = strings.Replace(guest.code, get(lcmd)+i32('t')+eq+if_+unreachable, get(lcmd)+i32('t')+eq+if_+loop+branch(0)+end, 1)
	hangs := loadOf(t, h, m.bytes())
	c := chainOf(t, h, Step{Name: "p", Module: loadOf(t, h, variant('t', '0').bytes())}, Step{Name: "p", Module: hangs, Stage: Shadow})
	const batches = 10_000
	for range batches {
		b := batchOf("ka", "t", "kb")
		process(t, c, b)
		if got := outcomes(b); got != "accepted key=a\naccepted\naccepted key=b\n" {
			t.Fatalf("got %s", got)
		}
	}
	n := settled(t, c)
	if n.Compared+n.Skipped != 3*batches || n.Failed == 0 {
		t.Errorf("%+v", n)
	}
	c.places[0].tried.watch.paid.Store(time.Now().Add(time.Hour).UnixNano()) // it has used more than its share
	before := c.places[0].tried.step.bill.calls.Load()
	process(t, c, batchOf("ka", "t", "kb"))
	if after := settled(t, c); after.Compared != n.Compared || after.Skipped != n.Skipped+3 || c.places[0].tried.step.bill.calls.Load() != before {
		t.Errorf("%+v", after)
	}
	if p := c.places[0]; p.active.bill == p.tried.step.bill || p.active.bill.poison.some.Load() {
		t.Error("the shadow is on the bill of the version in force")
	}
}

// At most so many events of a request are compared, and the rest counted.
func TestOfALargeRequestAPartIsCompared(t *testing.T) {
	h := hostOf(t, Config{Instances: 1})
	m := loadOf(t, h, scripted(false).bytes())
	c := chainOf(t, h, Step{Name: "p", Module: m}, Step{Name: "p", Module: m, Stage: Shadow})
	process(t, c, batchOf(strings.Fields(strings.Repeat("ka ", sampleEvents+100))...))
	if n := settled(t, c); n.Compared != sampleEvents || n.Skipped != 100 || n.Keys != 0 {
		t.Errorf("%+v", n)
	}
	large := "0" + strings.Repeat("x", 1<<20)
	process(t, c, batchOf(large, large, large, large, large))
	if n := settled(t, c); n.Compared != sampleEvents+1 || n.Skipped != 100+4 {
		t.Errorf("%+v", n)
	}
}

// A canary gets whole requests, by the hash of the producer: always the same, and more with a larger share.
func TestACanaryHasTheRequestsOfItsProducers(t *testing.T) {
	h := hostOf(t, Config{Instances: 1})
	active, tried := loadOf(t, h, scripted(false).bytes()), loadOf(t, h, variant('k', 'e').bytes())
	served := map[int]map[string]bool{}
	for _, percent := range []int{1, 25, 50, 100} {
		c := chainOf(t, h, Step{Name: "other", Module: active}, Step{Name: "p", Module: active}, Step{Name: "p", Module: tried, Stage: Canary, Percent: percent})
		served[percent] = map[string]bool{}
		for i := range 1000 {
			producer := fmt.Sprintf("producer-%d", i)
			for range 2 {
				b := batchOf("ka", "0", "kb")
				b.Producer = []byte(producer)
				process(t, c, b)
				want, keys := active.Digest+","+active.Digest, "accepted key=a\naccepted\naccepted key=b\n"
				if canary := strings.HasSuffix(b.Chain, tried.Digest); canary {
					want, keys = active.Digest+","+tried.Digest, "accepted key=\naccepted\naccepted key=\n"
					served[percent][producer] = true
				}
				if b.Chain != want || outcomes(b) != keys {
					t.Fatalf("%s: %s by %s", producer, outcomes(b), b.Chain)
				}
			}
		}
		if n := len(served[percent]); n < percent*10-60 || n > percent*10+60 {
			t.Errorf("%d %%: %d of 1000 producers", percent, n)
		}
		n := settled(t, c)
		if all := int64(6 * len(served[percent])); n.Stage != Canary || n.Compared+n.Skipped != all || n.Keys*3 != n.Compared*2 || n.Failed != 0 {
			t.Errorf("%d %%: of %d events: %+v", percent, all, n)
		}
	}
	for producer := range served[25] {
		if !served[50][producer] {
			t.Errorf("%s has left the canary that grew", producer)
		}
	}
}

// What is counted of a version that is tried goes on when another plugin of the chain is changed.
func TestComparisonsOutliveOtherChanges(t *testing.T) {
	h := hostOf(t, Config{Instances: 1})
	m, other := loadOf(t, h, scripted(false).bytes()), loadOf(t, h, variant('k', 'e').bytes())
	steps := []Step{{Name: "p", Module: m}, {Name: "p", Module: other, Stage: Shadow}}
	c := chainOf(t, h, steps...)
	process(t, c, batchOf("ka"))
	settled(t, c)
	next := chainOf(t, h, append(steps, Step{Name: "q", Module: m})...)
	next.Inherit(c, "q")
	process(t, next, batchOf("ka"))
	if n := settled(t, next); n.Compared != 2 || n.Keys != 2 || n.Nanoseconds <= 0 {
		t.Errorf("%+v", n)
	}
	again := chainOf(t, h, steps...)
	again.Inherit(next, "p")
	if n := settled(t, again); n.Compared != 0 {
		t.Errorf("the plugin itself was changed: %+v", n)
	}
}

// While a chain with a shadow and a canary is freed, nothing is compared any more and nobody hangs.
func TestChainsWithSamplesUnderWayAreFreed(t *testing.T) {
	defer leaks.None(t)
	h := hostOf(t, Config{Instances: 2})
	m, other := loadOf(t, h, scripted(false).bytes()), loadOf(t, h, variant('k', 'e').bytes())
	for range 20 {
		c, err := h.NewChain(context.Background(), []Step{{Name: "p", Module: m}, {Name: "p", Module: other, Stage: Canary, Percent: 100}, {Name: "q", Module: m, Stage: Shadow}}, Rules{})
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			process(t, c, batchOf("ka", "t", "d"))
		}
		closed(t, c.Retire())
	}
	if n := len(h.metrics.bills.all); n != 0 {
		t.Errorf("%d bills are left", n)
	}
}

func TestStagesInMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	h, err := New(Config{Instances: 1}, slog.New(slog.DiscardHandler), reg)
	if err != nil {
		t.Fatal(err)
	}
	m := loadOf(t, h, scripted(false).bytes())
	c := chainOf(t, h, Step{Name: "p", Module: m}, Step{Name: "p", Module: m, Stage: Shadow})
	process(t, c, batchOf("ka", "t", "kb"))
	settled(t, c)
	got := gather(t, reg)
	for name, want := range map[string]float64{
		"events_total kept": 2, "events_total shadow kept": 2, "failures_total TRAP": 1, "failures_total TRAP shadow": 1,
		"compared_events_total compared shadow": 2, "compared_events_total failed shadow": 1, "compared_events_total skipped shadow": 0,
		"differences_total shadow verdict": 0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s = %v, want %v", name, v, want)
		}
	}
}

// With a shadow a batch allocates as good as nothing more, and nothing by the event.
func TestSamplesAllocateNothingByTheEvent(t *testing.T) {
	if race.Enabled {
		t.Skip("pools forget at random")
	}
	h := hostOf(t, Config{Instances: 1})
	m := loadOf(t, h, scripted(false).bytes())
	c := chainOf(t, h, Step{Name: "p", Module: m}, Step{Name: "p", Module: m, Stage: Shadow})
	b := batchOf(strings.Fields(strings.Repeat("ka ", 1000))...)
	b.Headers = []event.Attr{{Name: []byte("a"), Value: []byte("b")}}
	watch := c.places[0].tried.watch
	n := testing.AllocsPerRun(50, func() {
		watch.paid.Store(0) // however slow the machine is
		process(t, c, b)
		settled(t, c)
	})
	if n > 20 {
		t.Errorf("%v allocations a batch", n)
	}
}

// What an event costs with the example in C, alone and with the same version as a shadow or a canary's reference beside it:
// time is that of the request, cpu-ns of all.
func BenchmarkStages(b *testing.B) {
	config := []byte(`{"drop_status_from":500}`)
	for name, tried := range map[string]Step{"alone": {}, "shadow": {Stage: Shadow}, "canary": {Stage: Canary, Percent: 100}} {
		b.Run(name, func(b *testing.B) {
			h := hostOf(b, Config{Instances: 1})
			m := loadOf(b, h, exampleInC(b))
			steps := []Step{{Name: "accesslog", Module: m, Config: config}}
			if tried.Stage != Active {
				tried.Name, tried.Module, tried.Config = "accesslog", m, config
				steps = append(steps, tried)
			}
			c := chainOf(b, h, steps...)
			benchmark(b, c)
			for _, n := range c.Comparisons() {
				b.ReportMetric(float64(n.Compared)/float64(n.Compared+n.Skipped)*100, "%compared")
			}
		})
	}
}
