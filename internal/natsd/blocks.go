package natsd

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/minio/highwayhash"
)

// The file of a message block is a row of records, each
//
//	length uint32 | sequence uint64 | time int64 | length of subject uint16 | subject | [length uint32 | headers] | message | sum [8]byte
//
// in little endian. The sum covers sequence, time, subject, headers and message, but none of the lengths. So where there
// are no headers, which events always have, a damage to the length of the subject is not seen. (nats-server
// 2.15, server/filestore.go: writeMsgRecordToBuf, rebuildStateFromBufLocked.)
const (
	recordHead = 22
	recordSum  = 8
	recordMin  = recordHead + recordSum
	recordMax  = 32 << 20

	withHeaders = 1 << 31 // in the length of the record
	erased      = 1 << 63 // in the sequence: there is no such message any more
	tombstone   = 1 << 62 // in the sequence: that message, stored before, was removed
	sequenceMax = 1 << 48 // nothing gets there; keeps the search for a record from summing up megabytes of noise
)

var le = binary.LittleEndian

// block is the file of a message block while it is examined.
type block struct {
	buf []byte
	sum hash.Hash64

	holes       []hole
	repaired    bool     // a length in buf was put right
	removed     []uint64 // sequences that tombstones name
	first, last uint64   // sequences of records, tombstones aside; 0 for none
	lastTime    int64
}

// hole is a piece of a block that is no row of sound records.
type hole struct {
	from, to      int
	before, after uint64 // sequences of its neighbours, 0 where it is at the block's edge
}

// empty reports whether the hole is too small for a message: a tombstone was there, and what it removed comes back.
func (h *hole) empty() bool { return h.to-h.from <= recordMin }

// examineBlock reads the block with that number of the stream called name. A last record that was not written to its end
// is no hole: the server takes it away, and has not confirmed it.
func examineBlock(buf []byte, name string, number int, newest bool) (*block, error) {
	key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", name, number))
	sum, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return nil, err
	}
	b := &block{buf: buf, sum: sum}
	for at := 0; at < len(buf); {
		if n := b.sound(at, le32(buf[at:])); n > 0 {
			b.note(at)
			at += n
			continue
		}
		next := b.resync(at + 1)
		if b.mendLength(at, next) {
			continue
		}
		if newest && next == len(buf) && torn(buf[at:]) {
			break
		}
		b.holes = append(b.holes, hole{from: at, to: next, before: b.last})
		at = next
	}
	return b, nil
}

// note takes down the sound record at.
func (b *block) note(at int) {
	seq, stamp := le.Uint64(b.buf[at+4:]), int64(le.Uint64(b.buf[at+12:]))
	if seq&tombstone != 0 && seq&erased == 0 {
		b.removed = append(b.removed, seq&^tombstone)
		return
	}
	seq &^= erased
	if b.first == 0 {
		b.first = seq
	}
	if seq > b.last {
		b.last, b.lastTime = seq, stamp
	}
	if n := len(b.holes); n > 0 && b.holes[n-1].after == 0 {
		b.holes[n-1].after = seq
	}
}

func le32(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return le.Uint32(b)
}

// sound returns the length of the record at, if it had the length field given, or 0 when that is none.
func (b *block) sound(at int, length uint32) int {
	n := int(length &^ withHeaders)
	if n < recordMin || n > recordMax || n > len(b.buf)-at {
		return 0
	}
	rec := b.buf[at : at+n]
	subject, skip := int(le.Uint16(rec[20:])), 0
	if length&withHeaders != 0 {
		skip = 4
	}
	if subject+skip > n-recordMin || le.Uint64(rec[4:])&^(erased|tombstone) >= sequenceMax {
		return 0
	}
	body := rec[recordHead : n-recordSum]
	if skip > 0 {
		if size := headerSize(body[subject+skip:]); size == 0 || le.Uint32(body[subject:]) != size {
			return 0
		}
	}
	b.sum.Reset()
	b.sum.Write(rec[4:20]) // never fails
	b.sum.Write(body[:subject])
	b.sum.Write(body[subject+skip:])
	if [recordSum]byte(b.sum.Sum(nil)) != [recordSum]byte(rec[n-recordSum:]) {
		return 0
	}
	return n
}

// headerSize returns how long the headers are at the beginning of text, 0 when there are none.
func headerSize(text []byte) uint32 {
	end := bytes.Index(text, []byte("\r\n\r\n"))
	if end < 0 || !bytes.HasPrefix(text, []byte("NATS/1.0")) {
		return 0
	}
	return uint32(end + 4)
}

// resync returns where the next sound record begins, or the end.
func (b *block) resync(from int) int {
	for at := from; at <= len(b.buf)-recordMin; at++ {
		if b.sound(at, le.Uint32(b.buf[at:])) > 0 {
			return at
		}
	}
	return len(b.buf)
}

// mendLength puts the length of the record at, or of its headers, right when only that is damaged: no sum covers them.
func (b *block) mendLength(at, next int) bool {
	if next-at < recordMin {
		return false
	}
	if field := at + recordHead + int(le.Uint16(b.buf[at+20:])); field+4 < next {
		old := le.Uint32(b.buf[field:])
		le.PutUint32(b.buf[field:], headerSize(b.buf[field+4:next]))
		if b.sound(at, uint32(next-at)|withHeaders) == 0 {
			le.PutUint32(b.buf[field:], old)
		}
	}
	for _, length := range []uint32{uint32(next - at), uint32(next-at) | withHeaders} {
		if b.sound(at, length) > 0 {
			le.PutUint32(b.buf[at:], length)
			b.repaired = true
			return true
		}
	}
	return false
}

// torn reports whether what is left behind the last sound record looks like one whose writing was cut off.
func torn(rest []byte) bool {
	n := int(le32(rest) &^ withHeaders)
	if len(rest) < recordHead || n >= recordMin && n <= recordMax && n > len(rest) {
		return true
	}
	for _, c := range rest {
		if c != 0 {
			return false
		}
	}
	return true
}

// healed returns the block without its holes. With keep, which is a sequence, it ends in a record that says that there
// were messages up to there.
func (b *block) healed(keep uint64) []byte {
	var out []byte
	at := 0
	for _, h := range b.holes {
		out, at = append(out, b.buf[at:h.from]...), h.to
	}
	out = append(out, b.buf[at:]...)
	if keep == 0 {
		return out
	}
	rec := make([]byte, recordHead, recordMin)
	le.PutUint32(rec, recordMin)
	le.PutUint64(rec[4:], keep|erased)
	le.PutUint64(rec[12:], uint64(b.lastTime))
	b.sum.Reset()
	b.sum.Write(rec[4:20])
	return append(out, b.sum.Sum(rec)...)
}
