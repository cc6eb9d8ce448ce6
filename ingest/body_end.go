package ingest

// chunkedEnd watches the end of chunked bodies on a connection. fasthttp takes line feeds, folded lines and more in a trailer
// section and does not tell; who reads the same bytes strictly would find the end of the request elsewhere, and another
// request in what we take for its rest. So nothing is served behind such an end. It belongs to the goroutine that reads.
type chunkedEnd struct {
	last   [len(plainEnd)]byte // bytes that were read
	reads  uint64              // how often something was read
	paused uint64              // reads when a deadline was last set
	ended  uint64              // reads at the end of the last request's body, if that was chunked; else 0
}

// plainEnd is how a chunked body without trailer ends (RFC 9112 section 7.1).
const plainEnd = "0\r\n\r\n"

func (w *chunkedEnd) read(p []byte) {
	w.reads++
	if n := len(p) - len(w.last); n >= 0 {
		copy(w.last[:], p[n:])
		return
	}
	copy(w.last[:], w.last[len(p):])
	copy(w.last[len(w.last)-len(p):], p)
}

// pause notes that a deadline is set. fasthttp sets one between a header and the first byte of its body.
func (w *chunkedEnd) pause() { w.paused = w.reads }

// end notes that a chunked body is over. It returns false when bytes other than its plain end were read last: a trailer, a
// line feed alone, another request.
func (w *chunkedEnd) end() bool {
	w.ended = w.reads
	return string(w.last[:]) == plainEnd
}

// begin starts a request whose header was read. It returns false when all of the header had been read before the body of
// the request before it was over, and that was chunked: then the plain end that was seen may have been that of this one.
func (w *chunkedEnd) begin() bool {
	behind := w.ended > 0 && w.paused == w.ended
	w.ended = 0
	return !behind
}
