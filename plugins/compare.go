package plugins

import (
	"bytes"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/event"
)

// comparison counts what two versions made of the same events.
type comparison struct {
	compared               atomic.Int64 // events
	verdicts, keys, values atomic.Int64 // of them, those that differ in it; keys and values of events that both kept
	failed                 atomic.Int64 // of them, those that the version beside failed on; nothing else of these is compared
	skipped                atomic.Int64 // events that were not compared, to bound the cost
}

// differences is a sum for a comparison.
type differences struct{ compared, verdicts, keys, values, failed int }

func (c *comparison) count(d differences) {
	c.compared.Add(int64(d.compared))
	c.verdicts.Add(int64(d.verdicts))
	c.keys.Add(int64(d.keys))
	c.values.Add(int64(d.values))
	c.failed.Add(int64(d.failed))
}

// Comparison is how a version that is tried compares with the one in force, in one stream, since it is there.
type Comparison struct {
	Plugin, Digest string
	Stage          Stage

	Compared               int64 // events that both versions processed
	Verdicts, Keys, Values int64 // of these, those in which they differ; keys and values of events that both kept
	Failed                 int64 // of these, those that the version beside failed on: the shadow, or for a canary the active one
	Skipped                int64 // events that were not compared, to bound the cost

	Nanoseconds, ActiveNanoseconds float64 // for an event, of the version that is tried and of the one in force; 0: not known
}

// Comparisons returns how the versions that are tried compare, in the order of the chain.
func (c *Chain) Comparisons() (all []Comparison) {
	for _, p := range c.places {
		t := p.tried
		if t == nil {
			continue
		}
		n := t.watch.counts
		one := Comparison{
			Plugin: t.step.Name, Digest: t.step.Module.Digest, Stage: t.step.Stage,
			Compared: n.compared.Load(), Verdicts: n.verdicts.Load(), Keys: n.keys.Load(), Values: n.values.Load(),
			Failed: n.failed.Load(), Skipped: n.skipped.Load(), Nanoseconds: t.step.cost.event(),
		}
		if p.active != nil {
			one.ActiveNanoseconds = p.active.cost.event()
		}
		all = append(all, one)
	}
	return all
}

// Inherit lets the versions of c that are tried go on with what is counted of them in the chain before, unless they are of
// the plugin that was changed. It is called before c is used.
func (c *Chain) Inherit(before *Chain, changed string) {
	for _, p := range c.places {
		for _, old := range before.places {
			if p.plugin() != changed && p.tried != nil && old.tried != nil && p.tried.step.same(old.tried.step) {
				p.tried.watch.counts, p.tried.step.cost = old.tried.watch.counts, old.tried.step.cost
			}
		}
	}
}

// cost is what the calls of a version took.
type cost struct{ nanoseconds, events atomic.Int64 }

func (c *cost) add(took time.Duration, events int) {
	c.nanoseconds.Add(int64(took))
	c.events.Add(int64(events))
}

// event is what an event takes, in nanoseconds; 0: there was none.
func (c *cost) event() float64 {
	n := c.events.Load()
	if n == 0 {
		return 0
	}
	return float64(c.nanoseconds.Load()) / float64(n)
}

// fate is what a version made of an event, small enough to be kept of many.
type fate struct {
	verdict   event.Verdict
	hasKey    bool
	key, data uint64 // hashes; 0 of an event that was not kept, and of bytes that stayed as they were
}

// fateOf is what became of an event that had these bytes. The seed is the same for both versions.
func fateOf(e *event.Event, before []byte, seed maphash.Seed) fate {
	if e.Verdict != event.Keep {
		return fate{verdict: e.Verdict}
	}
	f := fate{hasKey: e.HasKey}
	if e.HasKey {
		f.key = maphash.Bytes(seed, e.Key)
	}
	if !bytes.Equal(e.Data, before) {
		f.data = maphash.Bytes(seed, e.Data)
	}
	return f
}

// compare adds up in what the fates of an event differ.
func (d *differences) compare(a, b fate) {
	d.compared++
	switch {
	case a.verdict != b.verdict:
		d.verdicts++
	case a.verdict == event.Keep:
		if a.hasKey != b.hasKey || a.key != b.key {
			d.keys++
		}
		if a.data != b.data {
			d.values++
		}
	}
}
