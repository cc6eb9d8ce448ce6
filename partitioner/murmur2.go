package partitioner

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// HashKind names the hash that places the keys of a stream. It is fixed for the life of a table.
type HashKind uint8

// The hashes.
const (
	SipHash HashKind = iota // keyed, so that nobody outside can choose keys that meet: the default
	// Murmur2 is the placement of the Java producers of Kafka: partition = (murmur2(key) & 0x7fffffff) mod partitions.
	// Everyone can compute it, and others rely on it: the partitions are fixed, nothing moves and nothing splits.
	Murmur2
)

// String returns the word used in the stored form and in settings.
func (k HashKind) String() string {
	if k == Murmur2 {
		return "murmur2"
	}
	return "siphash"
}

// errFixed answers every change of a table whose placement others compute too.
var errFixed = errors.New("the hash murmur2 fixes the partitions and who gets which key: nothing moves or splits")

// Murmur2Of returns MurmurHash2 (Austin Appleby, public domain) with the seed that Kafka's Java client uses.
func Murmur2Of(key []byte) uint32 {
	const m, seed = 0x5bd1e995, 0x9747b28c
	h := seed ^ uint32(len(key))
	for ; len(key) >= 4; key = key[4:] {
		k := binary.LittleEndian.Uint32(key) * m
		h = h*m ^ (k^k>>24)*m
	}
	switch len(key) {
	case 3:
		h ^= uint32(key[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(key[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(key[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}

// NewMurmur2Table returns version 1 of the table of a stream that is placed like the topics of Java producers. Slot
// n is partition n; slots from the number of partitions on stay empty.
func NewMurmur2Table(secret Secret, partitions int) (*Table, error) {
	t, err := NewTable(secret, SlotsFor(max(partitions, 1)), Equal(max(partitions, 0)))
	if err != nil {
		return nil, fmt.Errorf("murmur2: %w", err)
	}
	t.hash = Murmur2
	for n := range t.slots {
		p := uint8(n % partitions)
		t.slots[n] = slot{epoch: 1, owner: p, target: p}
	}
	return t, nil
}

func (t *Table) murmur2(key []byte) uint64 {
	h := uint64(Murmur2Of(key) & 0x7fffffff)
	return h%uint64(len(t.partitions))<<t.shift | h
}

// HashKind tells by which hash keys are placed.
func (t *Table) HashKind() HashKind { return t.hash }

// checkFixed refuses a stored table of Murmur2 that someone has moved slots in.
func (t *Table) checkFixed() error {
	if t.hash != Murmur2 {
		return nil
	}
	if len(t.splits.all)+len(t.pending) > 0 || len(t.active) != len(t.partitions) {
		return errFixed
	}
	for n, s := range t.slots {
		if int(s.owner) != n%len(t.partitions) || s.owner != s.target {
			return fmt.Errorf("slot %d: %w", n, errFixed)
		}
	}
	return nil
}
