package partitioner

import (
	"bytes"
	"math/bits"
)

// Named is a key with its Hash.
type Named struct {
	Hi, Lo uint64
	Key    []byte // the first bytes of a long one
	Size   int    // of the whole key
}

// mostNamed bounds how much of a key is kept for people to read.
const mostNamed = 256

// wanted is a set of hashes whose keys somebody wants to know: a meter sees hashes, people know keys.
type wanted struct{ table [][2]uint64 }

// Want has the keys with these hashes remembered when they come next, in place of those wanted before.
func (m *Meter) Want(hashes [][2]uint64) {
	if len(hashes) == 0 {
		m.wanted.Store(nil)
		return
	}
	w := &wanted{table: make([][2]uint64, 1<<bits.Len(uint(4*len(hashes))))}
	for _, h := range hashes {
		if h == ([2]uint64{}) {
			continue // the mark of a free place: a key that nobody will ever have
		}
		at := h[1] & uint64(len(w.table)-1)
		for w.table[at] != ([2]uint64{}) {
			at = (at + 1) & uint64(len(w.table)-1)
		}
		w.table[at] = h
	}
	m.wanted.Store(w)
}

func (w *wanted) has(hi, lo uint64) bool {
	last := uint64(len(w.table) - 1)
	for at := lo & last; ; at = (at + 1) & last {
		switch h := w.table[at]; {
		case h == [2]uint64{hi, lo}:
			return true
		case h == [2]uint64{}:
			return false
		}
	}
}

// name remembers a key that is wanted; s.mu is held.
func (s *shard) name(hi, lo uint64, key []byte) {
	for _, n := range s.named {
		if n.Hi == hi && n.Lo == lo {
			return
		}
	}
	s.named = append(s.named, Named{hi, lo, bytes.Clone(key[:min(len(key), mostNamed)]), len(key)})
}

// Names returns the wanted keys that have come since the last time.
func (m *Meter) Names() (all []Named) {
	for _, s := range *m.shards.Load() {
		s.mu.Lock()
		all = append(all, s.named...)
		s.named = nil
		s.mu.Unlock()
	}
	return all
}
