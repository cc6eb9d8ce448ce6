package partitioner

import (
	"encoding/binary"

	"github.com/dchest/siphash"
)

// Secret keys the hash, so that nobody outside can choose keys that fall into the same slot.
type Secret [16]byte

// Hash returns SipHash-2-4-128 (https://www.aumasson.jp/siphash/) of key: hi is the first eight bytes of its output,
// lo the last eight, both little-endian.
func Hash(secret Secret, key []byte) (hi, lo uint64) {
	return siphash.Hash128(binary.LittleEndian.Uint64(secret[:8]), binary.LittleEndian.Uint64(secret[8:]), key)
}
