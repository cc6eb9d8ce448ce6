package partitioner

import (
	"encoding/binary"
	"slices"

	"github.com/headgate-io/headgate/event"
)

// classSecret is the secret for the keys of a class: they are a key space of their own.
func classSecret(secret Secret, c event.Class) (own Secret) {
	if c == event.AsStream {
		return secret
	}
	hi, lo := Hash(secret, []byte("headgate class "+c.String()))
	binary.LittleEndian.PutUint64(own[:8], hi)
	binary.LittleEndian.PutUint64(own[8:], lo)
	return own
}

// KeyHash returns the hash that the table places a key of a class by. With Murmur2 its first bits are the partition and its last
// 31 the hash, in all classes alike: nothing there ever moves. lo is that of the keyed hash, so that different keys differ.
func (t *Table) KeyHash(c event.Class, key []byte) (hi, lo uint64) { return t.Hasher(c)(key) }

// Hasher returns KeyHash for many keys of a class.
func (t *Table) Hasher(c event.Class) func(key []byte) (hi, lo uint64) {
	secret := classSecret(t.secret, c)
	return func(key []byte) (hi, lo uint64) {
		hi, lo = Hash(secret, key)
		if t.hash == Murmur2 {
			hi = t.murmur2(key)
		}
		return hi, lo
	}
}

// Classed tells that some keys of the stream may have an order although its others have none.
func (t *Table) Classed() bool { return t.classed }

// WithClasses returns the next table, which is Classed for good.
func (t *Table) WithClasses() *Table {
	n := t.next()
	n.classed = true
	return n
}

// orderingOf is the order of the keys of a class.
func (p *Planner) orderingOf(c event.Class) Ordering {
	switch c {
	case event.ClassStrict:
		return Strict
	case event.ClassSource:
		return min(p.s.Ordering, BySource)
	}
	return p.s.Ordering
}

// sketchOf is what a shard counts the keys of a class in; s.mu is held.
func (s *shard) sketchOf(c event.Class, counters int) *Sketch {
	if c == event.AsStream {
		return s.sketch
	}
	if s.classes[c-1] == nil {
		s.classes[c-1] = NewSketch(counters)
	}
	return s.classes[c-1]
}

// remembers tells that one of the shard's sketches has something in it.
func (s *shard) remembers() bool {
	return s.sketch.Total() > 0 || slices.ContainsFunc(s.classes[:], func(k *Sketch) bool { return k != nil && k.Total() > 0 })
}

// rates ends a tick of all sketches of the shard.
func (s *shard) rates(tick Tick) Report {
	all := make([]Report, 1, 1+len(s.classes))
	all[0] = s.sketch.rates(tick)
	for i, k := range s.classes {
		if k == nil {
			continue
		}
		r := k.rates(tick)
		for j := range r.Keys {
			r.Keys[j].Class = event.Class(i + 1)
		}
		all = append(all, r)
	}
	if len(all) == 1 {
		return all[0]
	}
	return MergeReports(all...)
}

// rates ends a tick.
func (s *Sketch) rates(tick Tick) Report {
	s.memory = MemoryFor(tick.Hold)
	s.Tick(tick.Elapsed)
	if s.Total() < nothing {
		s.Reset()
	}
	return s.Rates(tick.Share)
}
