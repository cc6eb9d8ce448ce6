package ingest

import (
	"io"
	"sync"
)

// smallExchange is the memory of one request that express answers, and of its answer. It is used again.
type smallExchange struct {
	in       [readBuffer]byte
	n        int // bytes of in that were read
	handed   int // those of them that fasthttp has got, when express leaves it the request
	head     head
	body     wholeBody
	out      []byte // the answer
	panicked bool   // somebody may still use it, so it is not used again
}

var smallExchanges = sync.Pool{New: func() any { return new(smallExchange) }}

// release gives the memory back; doc is the document of the answer, which keeps its room.
func (r *smallExchange) release(doc []byte) {
	if r.panicked {
		return
	}
	r.head.clear(doc)
	r.body.rest = nil
	if cap(r.out) > 2*mostRoom {
		r.out = nil
	}
	smallExchanges.Put(r)
}

// wholeBody reads a body that is in memory already.
type wholeBody struct{ rest []byte }

// Read implements io.Reader.
func (w *wholeBody) Read(p []byte) (n int, err error) {
	n = copy(p, w.rest)
	if w.rest = w.rest[n:]; len(w.rest) == 0 {
		err = io.EOF
	}
	return n, err
}
