package quicdoor

import (
	"fmt"
	"net"
)

// Wanted is how large each buffer of the socket should be. What comes while no goroutine reads is lost when it is full, and
// the client slows down: at 1 Gbit/s this is 58 ms.
const Wanted = 7 << 20

// Buffers are the sizes that the kernel granted, in bytes as sysctl counts them; 0: not known.
type Buffers struct{ Read, Write int }

// complaints says of each buffer that is too small what was wanted, what was got and what to do.
func (b Buffers) complaints() (all []string) {
	for _, one := range []struct {
		what, sysctl string
		got          int
	}{{"receive", "net.core.rmem_max", b.Read}, {"send", "net.core.wmem_max", b.Write}} {
		if one.got > 0 && one.got < Wanted {
			all = append(all, fmt.Sprintf("the %s buffer of the UDP socket is smaller than QUIC needs at high rates: wanted %d bytes, got %d; "+
				"raise the limit with `sysctl -w %s=%d` and start again", one.what, Wanted, one.got, one.sysctl, Wanted))
		}
	}
	return all
}

// enlarge asks for buffers of the wanted size and returns what there is then.
func enlarge(conn *net.UDPConn) Buffers {
	conn.SetReadBuffer(Wanted) // what came of it is seen below
	conn.SetWriteBuffer(Wanted)
	return granted(conn)
}
