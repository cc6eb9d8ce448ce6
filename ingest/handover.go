package ingest

import (
	"strconv"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// handover keeps what was found in a header until its request is handled, which is when the first byte of the body is
// there. It has room for so many; the oldest is lost when there are more, and then looked at once more.
type handover struct {
	last  atomic.Uint64
	heads [256]atomic.Pointer[head]
}

// leave keeps what was found in h, and appends to dst the ticket to fetch it.
func (o *handover) leave(dst []byte, found *head, h *fasthttp.RequestHeader) []byte {
	n := o.last.Add(1)
	found.of, found.ticket = h, n
	if lost := o.heads[n%uint64(len(o.heads))].Swap(found); lost != nil {
		lost.free(nil)
	}
	return strconv.AppendUint(dst, n, 10)
}

// fetch returns what was left for h with the ticket, nil when it is lost.
func (o *handover) fetch(ticket []byte, h *fasthttp.RequestHeader) *head {
	var n uint64
	for _, c := range ticket {
		n = 10*n + uint64(c-'0')
	}
	slot := &o.heads[n%uint64(len(o.heads))]
	found := slot.Swap(nil)
	if found == nil || found.of == h && found.ticket == n {
		return found
	}
	if !slot.CompareAndSwap(nil, found) { // it is for another request
		found.free(nil)
	}
	return nil
}
