package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// A record is, in little endian: a marker (4), the size of what it says (4), a checksum over the size, what it says and the
// salt of its file (4, CRC-32C), and what it says. The salt is random and in the name of the file: nobody whose bytes are
// in a record can make what looks like one to who searches behind damage.
const (
	headerSize = 12
	// MaxRecord is the most that a record can say, which bounds what is believed of a size.
	MaxRecord = 1 << 20
)

var (
	marker     = [4]byte{0xf5, 'H', 'G', 'J'} // no UTF-8 text has its first byte
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

func appendRecord(dst, record []byte, salt uint32) []byte {
	n := len(dst)
	dst = append(dst, marker[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(record)))
	dst = binary.LittleEndian.AppendUint32(dst, sum(dst[n+4:n+8], record, salt))
	return append(dst, record...)
}

func sum(size, record []byte, salt uint32) uint32 {
	var s [4]byte
	binary.LittleEndian.PutUint32(s[:], salt)
	return crc32.Update(crc32.Update(crc32.Checksum(s[:], castagnoli), castagnoli, size), castagnoli, record)
}

// The kinds of files: a log, which is added to; and a snapshot, whose last record is empty when it is whole.
const (
	kindLog      = "log"
	kindSnapshot = "all"
)

func fileName(number uint64, salt uint32, kind string) string {
	return fmt.Sprintf("%016x-%08x.%s", number, salt, kind)
}

// parseName is fileName backwards; ok is false for a file that is none of ours.
func parseName(name string) (number uint64, salt uint32, kind string, ok bool) {
	stem, kind, _ := strings.Cut(name, ".")
	first, second, _ := strings.Cut(stem, "-")
	if kind != kindLog && kind != kindSnapshot || len(first) != 16 || len(second) != 8 {
		return 0, 0, "", false
	}
	number, err := strconv.ParseUint(first, 16, 64)
	if err != nil {
		return 0, 0, "", false
	}
	low, err := strconv.ParseUint(second, 16, 32)
	return number, uint32(low), kind, err == nil
}
