package partitioner

import (
	"math"
	"math/bits"
	"time"

	"github.com/headgate-io/headgate/event"
)

// Split is a key whose events are spread over child slots, as it is in a table.
type Split struct {
	Hi, Lo   uint64  // the Hash of the key
	Children []Place // on distinct partitions; a power of two of them unless Spread
	SplitTerms
}

// SplitTerms are what a split key is split for and until when at least. Times are of the planner's clock.
type SplitTerms struct {
	Spread bool          // an event may go to any child; else the child is that of its source
	Born   time.Duration // when it was split, since the epoch of Unix, in whole milliseconds
	Hold   time.Duration // it is not merged before Born+Hold
	Class  event.Class   // of the key
}

type split struct {
	hi, lo   uint64
	children []child
	SplitTerms
}

// choose returns the child for a source, or for the number of a turn when the key is spread.
func (s *split) choose(source uint64) uint64 {
	if d := uint64(len(s.children)); s.Spread {
		return source % d
	} else {
		return source & (d - 1)
	}
}

type child struct {
	slot
	id int32 // from the number of slots on
}

// splits finds split keys by all 128 bits of their hash. The zero value is empty.
type splits struct {
	all    []split
	probe  []*split // open addressing from lo on, at most a quarter full: keyed hashes need no further mixing
	spread bool     // some of them are
}

func newSplits(all []split) splits {
	if len(all) == 0 {
		return splits{}
	}
	s := splits{all: all, probe: make([]*split, 1<<bits.Len(uint(4*len(all))))}
	for i := range all {
		s.spread = s.spread || all[i].Spread
		at := all[i].lo & uint64(len(s.probe)-1)
		for s.probe[at] != nil {
			at = (at + 1) & uint64(len(s.probe)-1)
		}
		s.probe[at] = &all[i]
	}
	return s
}

func (s *splits) find(hi, lo uint64) *split {
	if len(s.probe) == 0 {
		return nil
	}
	last := uint64(len(s.probe) - 1)
	for at := lo & last; ; at = (at + 1) & last {
		if f := s.probe[at]; f == nil || f.lo == lo && f.hi == hi {
			return f
		}
	}
}

// Splits returns the split keys.
func (t *Table) Splits() []Split {
	var all []Split
	for _, s := range t.splits.all {
		view := Split{Hi: s.hi, Lo: s.lo, SplitTerms: s.SplitTerms}
		for i := range s.children {
			view.Children = append(view.Children, s.children[i].place(int32(s.hi>>t.shift), s.children[i].id))
		}
		all = append(all, view)
	}
	return all
}

// LookupLeast is Lookup for a key whose events may go to any of its children: the one whose partition has the least
// load for its weight so far. load is the caller's own count for each partition; turn settles who is asked first,
// so that equals take turns.
func (t *Table) LookupLeast(hi, lo, turn uint64, load []float64) Place {
	s := t.splits.find(hi, lo)
	if s == nil || !s.Spread {
		return t.Lookup(hi, lo, turn)
	}
	return t.least(s, turn, load)
}

// least chooses among the children of a key that is spread.
func (t *Table) least(s *split, turn uint64, load []float64) Place {
	at := turn % uint64(len(s.children))
	best, least := &s.children[at], math.Inf(1)
	for i := range s.children {
		c := &s.children[(at+uint64(i))%uint64(len(s.children))]
		if l := load[c.owner] / t.partitions[c.owner].Weight; l < least {
			best, least = c, l
		}
	}
	return best.place(int32(s.hi>>t.shift), best.id)
}

// Forget limits what counts in the load that LookupLeast looks at: none is more than most over the mean, nor more than a quarter
// of that below it. A partition that was flooded once would get nothing else until all the others had got as much; and one
// that has just become a child's would get everything until it had.
func Forget(load []float64, most float64) {
	mean := 0.0
	for _, l := range load {
		mean += l / float64(len(load))
	}
	for i := range load {
		load[i] = max(mean-most/4, min(load[i], mean+most))
	}
}
