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

// Of returns the identity of the event with that id.
func (n Namer) Of(id []byte) ID {
	hi, lo := siphash.Hash128(n.k0, n.k1, id)
	return ID{hi, lo}
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
