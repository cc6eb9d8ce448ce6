package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// Frame is a sealed frame as the spool keeps it.
type Frame struct {
	Partition    int32
	First        uint64 // number of its first event in the lane, from 1
	Events       int    // at least 1
	Framing      uint8  // kept for the caller
	Codec        string // kept for the caller, at most 8 bytes
	TableVersion uint64 // likewise
	Payload      []byte
}

// Last returns the number of the frame's last event.
func (f *Frame) Last() uint64 { return f.First + uint64(f.Events) - 1 }

// A record is a header and the payload of a frame. All integers are little endian:
//
//	 0  marker      4  where to go on behind damage
//	 4  kind        1  1: a frame; others are passed over
//	 5  framing     1
//	 6  partition   2
//	 8  events      4
//	12  size        4  of the payload
//	16  first       8
//	24  table       8  version of the routing table
//	32  at          8  when it was written, milliseconds since 1970
//	40  codec       8  name, padded with zeros
//	48  payload     4  CRC-32C
//	52  header      4  CRC-32C of the 52 bytes before and the salt of the segment
//
// The salt is random: no event can contain what looks like a record to who searches behind damage.
const (
	headerSize = 56
	kindFrame  = 1

	// Bounds of what is believed when it is read, however well its checksum looks.
	maxPartitions = 256
	maxPayload    = 256 << 20
	maxEvents     = 1 << 26
	maxNumber     = 1 << 62
	maxCodec      = 8
)

var (
	marker     = [4]byte{0xf5, 'H', 'G', '1'} // no UTF-8 text has its first byte
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errDamaged = errors.New("damaged")
)

// header is a record without its payload.
type header struct {
	Frame        // Payload is nil
	kind         uint8
	size         uint32
	at           int64
	sum          uint32
	recordLength int64
}

// check returns why the spool can't keep the frame.
func (f *Frame) check() error {
	switch {
	case f.Partition < 0 || f.Partition >= maxPartitions || f.Events < 1 || f.Events > maxEvents:
		return fmt.Errorf("partition %d, %d events", f.Partition, f.Events)
	case f.First < 1 || f.First > maxNumber || len(f.Payload) > maxPayload || len(f.Codec) > maxCodec:
		return fmt.Errorf("number %d, %d bytes, codec %q", f.First, len(f.Payload), f.Codec)
	}
	return nil
}

// appendRecord appends the record of a frame for a segment with that salt.
func appendRecord(dst []byte, f *Frame, salt uint32, at time.Time) []byte {
	n := len(dst)
	dst = append(dst, marker[:]...)
	dst = append(dst, kindFrame, f.Framing)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(f.Partition))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(f.Events))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(f.Payload)))
	dst = binary.LittleEndian.AppendUint64(dst, f.First)
	dst = binary.LittleEndian.AppendUint64(dst, f.TableVersion)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(at.UnixMilli()))
	var codec [maxCodec]byte
	copy(codec[:], f.Codec)
	dst = append(dst, codec[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(f.Payload, castagnoli))
	dst = binary.LittleEndian.AppendUint32(dst, headerSum(dst[n:], salt))
	return append(dst, f.Payload...)
}

// headerSum is the checksum of the header that raw begins with.
func headerSum(raw []byte, salt uint32) uint32 {
	sum := ^crc32.Checksum(raw[:headerSize-4], castagnoli)
	for range 4 { // crc32.Update of a local array would put it on the heap
		sum = castagnoli[byte(sum)^byte(salt)] ^ sum>>8
		salt >>= 8
	}
	return ^sum
}

// parseHeader reads the header at the beginning of raw; false for anything that is none.
func parseHeader(raw []byte, salt uint32) (h header, ok bool) {
	if len(raw) < headerSize || [4]byte(raw) != marker || binary.LittleEndian.Uint32(raw[52:]) != headerSum(raw, salt) {
		return h, false
	}
	h = header{
		Frame: Frame{
			Partition: int32(binary.LittleEndian.Uint16(raw[6:])), Events: int(binary.LittleEndian.Uint32(raw[8:])),
			First: binary.LittleEndian.Uint64(raw[16:]), TableVersion: binary.LittleEndian.Uint64(raw[24:]),
			Framing: raw[5], Codec: codecName(raw[40:48]),
		},
		kind: raw[4], size: binary.LittleEndian.Uint32(raw[12:]), at: int64(binary.LittleEndian.Uint64(raw[32:])),
		sum: binary.LittleEndian.Uint32(raw[48:]),
	}
	h.recordLength = headerSize + int64(h.size)
	return h, h.size <= maxPayload && (h.kind != kindFrame || h.check() == nil)
}

// codecName takes the zeros off a name; the usual ones cost no memory.
func codecName(raw []byte) string {
	n := len(raw)
	for n > 0 && raw[n-1] == 0 {
		n--
	}
	for _, known := range [...]string{"zstd", "s2", "lz4", "gzip", "none"} {
		if string(raw[:n]) == known {
			return known
		}
	}
	return string(raw[:n])
}
