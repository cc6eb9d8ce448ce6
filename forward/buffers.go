package forward

import (
	"math/bits"
	"sync"
)

// Buffers come in classes of 5, 6, 7 and 8 << n bytes: every piece is reused, a lane of little traffic holds
// little memory, and at most a fifth of a buffer is wasted, so that the budget, which counts what is asked for,
// says the truth.
const (
	smallestBuffer = 512
	largestBuffer  = 16 << 20 // what is larger is left to the garbage collector
)

// buffer is a pooled piece of memory; its owner uses and reassigns b.
type buffer struct{ b []byte }

// pools has buffers by class.
var pools [88]sync.Pool

// class returns the smallest class of at least n bytes, n >= 8.
func class(n int) int {
	shift := bits.Len(uint(n-1)) - 3
	return shift*4 + (n-1)>>shift - 4
}

// classSize returns the bytes of a class.
func classSize(c int) int { return (c%4 + 5) << (c / 4) }

// take returns an empty buffer of at least n bytes of capacity.
func take(n int) *buffer {
	if n > largestBuffer {
		return &buffer{b: make([]byte, 0, n)}
	}
	c := class(max(n, smallestBuffer))
	if p, ok := pools[c].Get().(*buffer); ok {
		return p
	}
	return &buffer{b: make([]byte, 0, classSize(c))}
}

// give returns a buffer to the largest class that it can serve.
func give(p *buffer) {
	if cap(p.b) < smallestBuffer || cap(p.b) > largestBuffer {
		return
	}
	c := class(cap(p.b))
	if classSize(c) > cap(p.b) {
		c--
	}
	p.b = p.b[:0]
	pools[c].Put(p)
}

// small is the largest buffer that events are collected in by need. From there on there is one size, that of a whole
// frame: buffers of many sizes would pile up in the pools, each as many as were ever in use together.
const small = 64 << 10

// bufferSize returns how much to take for the events of a frame that has or is expected to have n bytes of limit.
func bufferSize(n, limit int) int {
	if n <= small {
		return n
	}
	return max(n, limit)
}

// grow returns a larger buffer with the content of p, into which n more bytes fit.
func grow(p *buffer, n, limit int) *buffer {
	q := take(bufferSize(max(len(p.b)+n, 2*cap(p.b)), limit))
	q.b = append(q.b, p.b...)
	give(p)
	return q
}
