package gateway

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/partitioner"
)

// fenceSettings has keys merged within seconds, since a world lasts ten, and the number of partitions follow the load.
var fenceSettings = partitioner.Settings{Ordering: partitioner.BySource, Hold: 500 * time.Millisecond, Target: 4 << 20, Min: 2, Max: fencePartitions}

// load is what is measured under a table: rates of the keys that are others every second or so, and a rest.
func (w *fenceWorld) load(t *partitioner.Table) partitioner.Load {
	epoch := time.Since(w.began) / (800 * time.Millisecond)
	r := rand.New(rand.NewPCG(w.seed, uint64(epoch)))
	l := partitioner.Load{Elapsed: tickTime, Slots: make([]float64, t.Slots()), Children: map[int32]float64{}}
	rest := r.Float64() * 6 * (1 << 20) / float64(t.Slots())
	for i := range l.Slots {
		l.Slots[i] = rest
	}
	l.Heavy.Total = rest * float64(t.Slots())
	for n := range fenceKeys {
		rate := []float64{0, 1e5, 1e6, 4e6, 16e6}[r.IntN(5)]
		hi, lo := t.KeyHash(event.AsStream, fenceKey(n))
		l.Heavy.Keys = append(l.Heavy.Keys, partitioner.Heavy{Hi: hi, Lo: lo, Fast: rate, Lower: rate, Upper: rate})
		l.Heavy.Total += rate
		split := slices.IndexFunc(t.Splits(), func(s partitioner.Split) bool { return s.Hi == hi && s.Lo == lo })
		if split < 0 {
			l.Slots[t.Lookup(hi, lo, 0).Slot] += rate
			continue
		}
		for _, c := range t.Splits()[split].Children {
			l.Children[c.Child] = rate / float64(len(t.Splits()[split].Children))
		}
	}
	slices.SortFunc(l.Heavy.Keys, func(a, b partitioner.Heavy) int { return int(b.Upper - a.Upper) })
	return l
}

// plan has the production planner change the table as the load asks for, by a clock that is set forth and back.
func (p *fenceProcess) plan() {
	planner, wrong := partitioner.NewPlanner(fenceSettings), time.Duration(0)
	for {
		r := p.w.draw("tick")
		if !p.rest(p.ctx, tickTime) || p.ctx.Err() != nil || p.w.calm.Load() {
			return
		}
		switch r.IntN(60) {
		case 0:
			wrong = time.Duration(r.Int64N(int64(time.Minute))) - 30*time.Second
		case 1:
			p.rest(p.ctx, p.w.delay(r)) // it is late
		}
		t := p.s.partitioner.Table()
		if t.UnderWay() {
			continue
		}
		plan := planner.Next(t, p.w.load(t), p.w.clock()+wrong)
		if len(plan.Changes) == 0 && plan.Ledger == nil {
			continue
		}
		p.step("plan")
		p.begin(t, plan)
		p.w.fenced.Add(1)
		p.w.say("#%d planned %v, now %v", p.number, plan, p.s.partitioner.Table())
	}
}

// rivalPlan is what a second controller wants: in a planned world what a planner of its own does, which has looked for two seconds.
func (w *fenceWorld) rivalPlan(r *rand.Rand, t *partitioner.Table) (plan partitioner.Plan, ok bool) {
	if !w.planned {
		return fencePlan(r, t)
	}
	planner := partitioner.NewPlanner(fenceSettings)
	for n := range 20 {
		plan = planner.Next(t, w.load(t), w.clock()+time.Duration(n)*tickTime)
		if next, err := t.Begin(plan); err == nil && next.UnderWay() {
			return plan, true
		}
	}
	return plan, false
}

// readStale is read by one who may be told what was stored a while ago: then what it writes is refused.
func (s *fenceStore) readStale(r *rand.Rand) ([]byte, uint64) {
	doc, revision := s.read()
	if !s.w.planned || r.IntN(3) > 0 {
		return doc, revision
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := revision - min(revision-1, uint64(r.IntN(3)))
	return slices.Clone(s.history[old-1]), old
}

// fenceEvents are the numbers of a batch's events by key and source.
func fenceEvents(b *event.Batch) map[string][]int {
	all := map[string][]int{}
	for i := range b.Events {
		var key, source, n int
		if _, err := fmt.Sscan(string(b.Events[i].Data), &key, &source, &n); err != nil {
			panic(err)
		}
		of := fmt.Sprintf("key %d of source %d", key, source)
		all[of] = append(all[of], n)
	}
	return all
}

// The planner's worlds need the parts of the protocol as the others do, and what a reader saw in one that lacks a part is
// no log of what producers did: that check alone refuses it.
func TestFencePlannedNeedsItsParts(t *testing.T) {
	presses := forward.NewPresses(2)
	for _, part := range []ablation{mark, parking, waiting} {
		t.Run(string(part), func(t *testing.T) {
			for seed := range uint64(60) {
				if w := runFenceBy(t, seed, part, presses, planned); w.refused != "" {
					t.Logf("seed %d: %s", seed, w.refused)
					return
				}
			}
			t.Error("every log could have come about in 60 schedules")
		})
	}
}
