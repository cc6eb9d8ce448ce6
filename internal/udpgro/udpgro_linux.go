package udpgro

import (
	"encoding/binary"
	"net"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// Sizes of a read. What the kernel joins is no longer than a datagram may be; its control messages are at most the segment size (24 bytes),
// TOS or traffic class (24), and the packet infos of both versions of IP (72).
const (
	datagrams = 8
	longest   = 1<<16 - 1
	controls  = 192
)

// Conn is a socket of which the kernel joins datagrams that follow each other. It has to be read with ReadBatch, by one goroutine at a
// time: whatever else reads gets several datagrams as one.
type Conn struct {
	*net.UDPConn
	in interface {
		ReadBatch(ms []ipv4.Message, flags int) (int, error)
	}
	joint [datagrams]ipv4.Message
	come  []ipv4.Message // of joint: those that are not handed out whole
	left  []byte         // of the first of them
	size  int            // of its segments
}

// Join has the kernel join the datagrams of conn, if it can. What is returned is read in conn's place.
func Join(conn *net.UDPConn) net.PacketConn {
	raw, err := conn.SyscallConn()
	if err != nil {
		return conn
	}
	if failed := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, 1) }); failed != nil || err != nil {
		return conn // before Linux 5.0
	}
	c := &Conn{UDPConn: conn, in: ipv4.NewPacketConn(conn)}
	for i := range c.joint {
		c.joint[i] = ipv4.Message{Buffers: [][]byte{make([]byte, longest)}, OOB: make([]byte, controls)}
	}
	return c
}

// ReadBatch reads datagrams into the first buffers of ms and says where each is from, as recvmmsg does. One that is longer than its buffer is
// cut. Those that came joined have the same Addr and control messages.
func (c *Conn) ReadBatch(ms []ipv4.Message, flags int) (int, error) {
	if len(c.come) == 0 {
		n, err := c.in.ReadBatch(c.joint[:], flags)
		if n <= 0 || err != nil {
			return 0, err
		}
		c.come = c.joint[:n]
		c.open()
	}
	n := 0
	for ; n < len(ms) && len(c.come) > 0; n++ {
		from, m := &c.come[0], &ms[n]
		segment := c.left[:min(c.size, len(c.left))]
		m.Addr, m.Flags = from.Addr, from.Flags
		m.N, m.NN = copy(m.Buffers[0], segment), copy(m.OOB, from.OOB[:from.NN])
		if c.left = c.left[len(segment):]; len(c.left) == 0 {
			if c.come = c.come[1:]; len(c.come) > 0 {
				c.open()
			}
		}
	}
	return n, nil
}

// open begins to hand out the first of what has come.
func (c *Conn) open() {
	m := &c.come[0]
	c.left, c.size = m.Buffers[0][:m.N], m.N
	for at := 0; at < m.NN; {
		h, body, rest, err := unix.ParseOneSocketControlMessage(m.OOB[at:m.NN])
		if err != nil {
			return
		}
		next := m.NN - len(rest)
		if h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_GRO && len(body) >= 4 {
			c.size = max(int(binary.NativeEndian.Uint32(body)), 1)
			m.NN = at + copy(m.OOB[at:], rest) // it is said of the whole alone
			return
		}
		at = next
	}
}
