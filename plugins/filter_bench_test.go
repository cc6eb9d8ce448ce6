package plugins

import (
	"context"
	"slices"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/plugins/builtin"
)

// BenchmarkFilterBeside compares a filter of a definition, and one with the built-in key, with the plugin in C that does the
// same: nanoseconds of CPU on top of the syntax check. It takes the best turn of each, since what else the machine does only
// ever adds.
func BenchmarkFilterBeside(b *testing.B) {
	key, err := jsonscan.ParsePointer("/remote_ip")
	if err != nil {
		b.Fatal(err)
	}
	rules := []builtin.Rule{{Drop: &builtin.Condition{JSON: "/response", Ge: 500}}}
	alone, err := builtin.NewFilter(rules, nil)
	if err != nil {
		b.Fatal(err)
	}
	keyed, err := builtin.NewFilter(rules, []jsonscan.Pointer{key})
	if err != nil {
		b.Fatal(err)
	}
	batch := accessLog(b, 256)
	chain := meteringChain(b, exampleInC(b), false)
	native := func(f *builtin.Filter, k *builtin.Key) func() {
		var watch []jsonscan.Pointer
		if f != nil {
			watch = f.Watch()
		}
		s := jsonscan.New(64, watch)
		return func() {
			for i := range batch.Events {
				e := &batch.Events[i]
				s.Check(e.Data)
				e.Fields = s.EventFields()
				if f != nil {
					f.Sift(batch, i, s.Fields[:])
				}
			}
			if k != nil {
				k.FillKeys(batch)
			}
		}
	}
	ways := []func(){
		native(nil, nil), native(alone, nil), native(keyed, &builtin.Key{JSON: "/remote_ip"}),
		func() {
			if err := chain.Process(context.Background(), batch); err != nil {
				b.Fatal(err)
			}
		},
	}
	best := make([]float64, len(ways))
	for b.Loop() {
		for i, way := range ways {
			if ns := wayTurn(batch, way); best[i] == 0 || ns < best[i] {
				best[i] = ns
			}
		}
	}
	b.ReportMetric(best[0], "check-ns/event")
	b.ReportMetric(max(0, best[1]-best[0]), "filter-ns/event")
	b.ReportMetric(max(0, best[2]-best[0]), "filter+key-ns/event")
	b.ReportMetric(best[3], "C-plugin-ns/event")
}

// wayTurn is the CPU time of one way for an event, in ns: the least of some.
func wayTurn(batch *event.Batch, way func()) float64 {
	const times = 10
	var all []float64
	for range times {
		for i := range batch.Events {
			batch.Events[i].Verdict, batch.Events[i].HasKey = event.Keep, false
		}
		before := cpuTime()
		way()
		all = append(all, float64(cpuTime()-before)/float64(len(batch.Events)))
	}
	return slices.Min(all)
}
