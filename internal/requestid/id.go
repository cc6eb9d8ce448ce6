// Package requestid makes the names of requests and batches.
package requestid

import (
	"math/rand/v2"
	"time"
)

// crockford is the alphabet of ULIDs: no letters that look like digits.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// New returns 26 characters that sort by time (ms) and do not repeat: 48 bits of time, 80 of chance, as in a ULID.
// It names requests and batches; it is no secret.
func New(now time.Time) string {
	high := uint64(now.UnixMilli())<<16 | rand.Uint64()>>48
	low := rand.Uint64()
	var text [26]byte
	for i := len(text) - 1; i >= 0; i-- {
		text[i] = crockford[low&31]
		low = low>>5 | high<<59
		high >>= 5
	}
	return string(text[:])
}
