package session

import "encoding/binary"

// A DATAGRAM frame of QUIC (RFC 9221) carries events of a session at the level Accepted. Nothing is said of them, and the
// network may lose them: whoever sends them must be able to do without.

// Place is how a datagram names the session on a bidirectional stream that the client opened: these are numbered by fours.
func Place(stream int64) uint64 { return uint64(stream) / 4 }

// AppendDatagramHead appends what stands before the events of a datagram.
func AppendDatagramHead(dst []byte, stream int64, f Framing) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, Place(stream)), uint64(f))
}
