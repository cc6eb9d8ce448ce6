package partitioner

import "math/bits"

// Split is a key whose events are spread over child slots, as it is in a table.
type Split struct {
	Hi, Lo   uint64  // the Hash of the key
	Children []Place // a power of two of them, on distinct partitions
}

type split struct {
	hi, lo   uint64
	children []child
}

type child struct {
	slot
	id int32 // from the number of slots on
}

// splits finds split keys by all 128 bits of their hash. The zero value is empty.
type splits struct {
	all   []split
	probe []*split // open addressing from lo on, at most a quarter full: keyed hashes need no further mixing
}

func newSplits(all []split) splits {
	if len(all) == 0 {
		return splits{}
	}
	s := splits{all: all, probe: make([]*split, 1<<bits.Len(uint(4*len(all))))}
	for i := range all {
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
		view := Split{Hi: s.hi, Lo: s.lo}
		for i := range s.children {
			view.Children = append(view.Children, s.children[i].place(int32(s.hi>>t.shift), s.children[i].id))
		}
		all = append(all, view)
	}
	return all
}
