package wire

import "encoding/binary"

// A block is magic, then columns: id (uvarint), length (uvarint), bytes. Ids ascend; unknown ones are
// skipped, so that old readers read new blocks. The last column is the checksum of all before it, because a
// codec's own checksum does not cover its skippable frames.
//
// There is no column of event lengths: both framings delimit the events already.
const magic = "HGM1"

// Ids of columns. An absent column means its field is empty or, for children, None everywhere.
const (
	colFrame      = 1  // partition, first, table version, framing, raw length, data length, gateway, stream
	colEpochs     = 2  // per slot, ascending: distance from the slot before (from None for the first), epoch
	colKeys       = 3  // per route, see appendKeys
	colSlots      = 4  // per route, see appendSlot
	colChildren   = 5  // per route, see appendSlot
	colEventRoute = 6  // per event: 0 introduces the next route, n+1 is route n
	colRequests   = 7  // per request: count, distance in time, id, traceparent (appendTrace), chain, source
	colIDs        = 8  // per event: 0 for none, else length + 1 and the bytes
	colTimes      = 9  // the unit in nanoseconds, then per event, see appendTimes
	colAttrs      = 10 // per event: their count, then of each two texts
	colAfter      = 11 // per predecessor: partition, number, text
	colTraceState = 12 // per request: text; absent when all are empty
	colClientID   = 13 // likewise
	colCaller     = 14 // likewise
	colSum        = 64 // CRC-32C (Castagnoli), little endian; leaves room for columns to come
)

// openColumn starts a column; its bytes are then appended, and closeColumn puts their number in front.
func openColumn(dst []byte, id uint64) (out []byte, start int) {
	out = binary.AppendUvarint(dst, id)
	return out, len(out)
}

func closeColumn(dst []byte, start int) []byte {
	n := len(dst) - start
	var length [binary.MaxVarintLen64]byte
	size := binary.PutUvarint(length[:], uint64(n))
	dst = append(dst, length[:size]...)
	copy(dst[start+size:], dst[start:start+n])
	copy(dst[start:], length[:size])
	return dst
}

// A text is bytes that often repeat: 0 when equal to prev, else length + 1 and the bytes.
func appendText(dst, text, prev []byte) []byte {
	if string(text) == string(prev) {
		return append(dst, 0)
	}
	dst = binary.AppendUvarint(dst, uint64(len(text))+1)
	return append(dst, text...)
}

func zigzag(n int64) uint64   { return uint64(n<<1) ^ uint64(n>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// reader takes values off the front of b. After the first fault every value is zero and failed stays set.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) more() bool { return !r.failed && len(r.b) > 0 }

func (r *reader) fail() {
	r.b, r.failed = nil, true
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// atMost reads a value no larger than limit.
func (r *reader) atMost(limit uint64) uint64 {
	v := r.uvarint()
	if v > limit {
		r.fail()
		return 0
	}
	return v
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) text(prev []byte) []byte {
	n := r.uvarint()
	if n == 0 {
		return prev
	}
	return r.bytes(n - 1)
}
