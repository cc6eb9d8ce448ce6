package plugins

import "golang.org/x/sys/unix"

// reservation is address space for a whole memory, of which the first part is readable and writable.
type reservation struct {
	all       []byte // nil when there was no address space left
	committed uint64
}

func reserve(size uint64) reservation {
	all, err := unix.Mmap(-1, 0, int(max(size, pageSize)), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return reservation{}
	}
	return reservation{all: all}
}

// commit returns the first size bytes, those that are new zeroed; nil when they can't be had.
func (r *reservation) commit(size uint64) []byte {
	if size > uint64(len(r.all)) {
		return nil
	}
	if size > r.committed {
		if err := unix.Mprotect(r.all[:size], unix.PROT_READ|unix.PROT_WRITE); err != nil {
			return nil
		}
		r.committed = size
	}
	return r.all[:size:size]
}

func (r *reservation) release() {
	if r.all != nil {
		if err := unix.Munmap(r.all); err != nil {
			panic("BUG: plugins: unmap a guest's memory: " + err.Error())
		}
	}
	*r = reservation{}
}
