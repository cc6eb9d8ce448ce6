package ingest

import (
	"errors"
	"io"
	"math/bits"
	"sync"
)

// Buffers come in sizes of 4 KiB, 8 KiB ... 64 MiB; larger ones are not kept.
const (
	smallest = 12
	largest  = 26
)

// slab is memory that goes round; b has a capacity of a power of two.
type slab struct{ b []byte }

var slabs [largest - smallest + 1]sync.Pool // of *slab, by size

// takeSlab returns an empty slab of at least n bytes.
func takeSlab(n int) *slab {
	size := max(smallest, bits.Len(uint(max(n, 1)-1)))
	if size <= largest {
		if s, ok := slabs[size-smallest].Get().(*slab); ok {
			return s
		}
	}
	return &slab{make([]byte, 0, 1<<size)}
}

func (s *slab) give() {
	if size := bits.Len(uint(cap(s.b))) - 1; size <= largest {
		s.b = s.b[:0]
		slabs[size-smallest].Put(s)
	}
}

// buffer grows as bytes arrive, never to a size that was only announced, and pays for its capacity from an account.
type buffer struct {
	slab    *slab
	account *account
	coming  int64 // bytes that were announced; 0: not known, or no matter
}

var (
	errOverLimit  = errors.New("more bytes than the limit")
	errOverBudget = errors.New("the memory budget is used up")
)

// trusted is how many announced bytes get their room before they are there: that of requests of common size, so that
// they are not copied. While memory is scarce no announcement is trusted, or clients that send one byte and no more
// could hold all of it.
const trusted = 128 << 10

// open takes a first slab; expected is the number of bytes that will probably come, negative if unknown.
func (b *buffer) open(expected int64) error {
	switch budget := b.account.budget; {
	case budget.Held() > budget.Limit()/2:
		expected = 1 << smallest
	case expected < 0:
		expected = trusted / 8
	}
	return b.take(min(expected, trusted))
}

// take is open for bytes of which so many are known or likely to come.
func (b *buffer) take(size int64) error {
	s := takeSlab(int(size))
	if !b.account.reserve(int64(cap(s.b))) {
		s.give()
		return errOverBudget
	}
	b.slab = s
	return nil
}

// close gives the memory back; bytes returns what is in it until then.
func (b *buffer) close() {
	if b.slab != nil {
		b.account.free(int64(cap(b.slab.b)))
		b.slab.give()
		b.slab = nil
	}
	b.coming = 0
}

func (b *buffer) bytes() []byte { return b.slab.b }

// replace gives back the memory there is before it takes some for size bytes, which are known to come.
func (b *buffer) replace(size int64) error {
	b.close()
	return b.take(size)
}

// mostIdle is how often in a row a reader may read nothing.
const mostIdle = 100

// fill reads src to its end, at most limit bytes: one more is errOverLimit, and gone.
func (b *buffer) fill(src io.Reader, limit int64) error {
	for idle := 0; idle < mostIdle; idle++ {
		have := len(b.slab.b)
		if int64(have) >= limit {
			return expectEnd(src)
		}
		if have == cap(b.slab.b) {
			if err := b.grow(limit); err != nil {
				return err
			}
		}
		n, err := src.Read(b.slab.b[have:min(int64(cap(b.slab.b)), limit)])
		b.slab.b = b.slab.b[:have+n]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if n > 0 {
			idle = 0
		}
	}
	return io.ErrNoProgress
}

// expectEnd reads src, of which enough has been read, and returns errOverLimit when there is more.
func expectEnd(src io.Reader) error {
	var one [1]byte
	switch _, err := io.ReadFull(src, one[:]); err {
	case nil:
		return errOverLimit
	case io.EOF:
		return nil
	default:
		return err
	}
}

// steep is the size from which a buffer grows fourfold: slabs that were too small wait for others to use them, and large
// ones should not be many.
const steep = 1 << 20

// leap is by how much a buffer grows when it is known that so much comes: with twice as much each time, what is copied would be
// nearly all of it.
const leap = 8

func (b *buffer) grow(limit int64) error {
	old := b.slab
	size := 2 * int64(cap(old.b))
	if size > steep {
		size *= 2
	} else if b.coming > size {
		size = min(leap*int64(cap(old.b)), b.coming)
	}
	next := takeSlab(int(min(size, limit)))
	// What is reserved is the buffer that stays; the old one is gone a moment later.
	if !b.account.reserve(int64(cap(next.b) - cap(old.b))) {
		next.give()
		return errOverBudget
	}
	next.b = append(next.b, old.b...)
	old.give()
	b.slab = next
	return nil
}
