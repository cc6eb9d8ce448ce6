//go:build !linux

package plugins

// reservation is a memory on the Go heap.
type reservation struct {
	all []byte
	max uint64
}

func reserve(size uint64) reservation { return reservation{max: size} }

// commit returns the first size bytes, those that are new zeroed; nil when they can't be had.
func (r *reservation) commit(size uint64) []byte {
	if size > r.max {
		return nil
	}
	if n := uint64(len(r.all)); size > n {
		r.all = append(r.all, make([]byte, size-n)...)
	}
	return r.all[:size]
}

func (r *reservation) release() { *r = reservation{} }
