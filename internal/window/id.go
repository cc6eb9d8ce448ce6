// Package window remembers for a while, and exactly, what was taken: the ids of events and the answers to requests. So
// what is sent twice is stored once. It does no I/O and starts no goroutine: what is to survive a restart it tells a Log.
package window

import (
	"encoding/binary"
	"time"

	"github.com/dchest/siphash"
)

// Secret keys the hashes, so that nobody outside can choose ids that are taken for one another.
type Secret [16]byte

// ID is the identity of an event: 128 bits of a keyed hash over its source and its id.
type ID struct{ Hi, Lo uint64 }

// Namer makes the identities of events that have something in common: who sent them.
type Namer struct{ k0, k1 uint64 }

// purpose keeps these hashes apart from those of partition keys, which may be made with the same secret.
const purpose = 0x6964732077696e64

// Namer returns what names the events of an authenticated caller, which may be nobody, and a source. The hash of each is
// the key of the next hash: (a, bc) and (ab, c) are two.
func (s Secret) Namer(caller, source []byte) Namer {
	hi, lo := siphash.Hash128(binary.LittleEndian.Uint64(s[:8])^purpose, binary.LittleEndian.Uint64(s[8:]), caller)
	hi, lo = siphash.Hash128(hi, lo, source)
	return Namer{hi, lo}
}

// Of returns the identity of the event with that id. Those of ids that differ in the low half of their last byte differ in the low bits of
// Lo: numbers that follow each other, as those of a session, are found in the same line of the cache.
func (n Namer) Of(id []byte) ID {
	last := len(id) - 1
	if last < 0 {
		hi, lo := siphash.Hash128(n.k0, n.k1, nil)
		return ID{hi, lo}
	}
	b := uint64(id[last])
	hi, lo := siphash.Hash128(n.k0, n.k1^(b>>4+1), id[:last])
	return ID{hi, lo ^ b&15}
}

// Series is a Namer of ids that may be numbers which follow each other: of most of them no hash is made.
type Series struct {
	Namer
	id   []byte // the last one
	made ID     // its identity
}

// Of is Namer.Of. The id must stay as it is until the next call.
func (s *Series) Of(id []byte) ID {
	last := len(id) - 1
	if last < 0 || len(s.id) != len(id) || (s.id[last]^id[last])>>4 != 0 || string(s.id[:last]) != string(id[:last]) {
		s.id, s.made = id, s.Namer.Of(id)
		return s.made
	}
	return ID{s.made.Hi, s.made.Lo ^ uint64(s.id[last]^id[last])}
}

// second is the resolution of ages. They are whole seconds since a window was made, on the monotonic clock.
func second(from, now time.Time) uint32 { return uint32(max(now.Sub(from), 0) / time.Second) }

// reach is how far back a window remembers everything, when it was made at from and has lately forgotten before its
// time what had been finished in the second forced, -1 for nothing.
func reach(from, now time.Time, forced int64, age time.Duration) time.Duration {
	since := max(now.Sub(from), 0)
	if forced >= 0 {
		since -= time.Duration(forced+1) * time.Second
	}
	return min(age, max(since, 0))
}
