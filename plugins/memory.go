package plugins

import (
	"encoding/binary"

	"github.com/tetratelabs/wazero/experimental"
)

// linear is the memory of one instance, and its own allocator. It grows in place up to limit: nothing is copied,
// no garbage is made, and closing the instance gives the pages back to the system at once, so that the next
// guest finds zeros.
type linear struct {
	limit   uint64 // bytes
	refused bool   // the guest asked for more than limit
	pages   reservation
}

// Allocate is called once, when the instance is made.
func (l *linear) Allocate(_, most uint64) experimental.LinearMemory {
	l.pages = reserve(min(most, l.limit))
	return l
}

// Reallocate returns nil when the guest can have no more; the guest then sees that memory.grow failed.
func (l *linear) Reallocate(size uint64) []byte {
	if size <= l.limit {
		if p := l.pages.commit(size); p != nil {
			return p
		}
	}
	l.refused = true
	return nil
}

// Free gives the memory back. No call may be running in the instance.
func (l *linear) Free() { l.pages.release() }

func u32(p []byte, at int) uint32       { return binary.LittleEndian.Uint32(p[at:]) }
func putU32(p []byte, at int, v uint32) { binary.LittleEndian.PutUint32(p[at:], v) }
