package udpgro

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/headgate-io/headgate/internal/race"
)

// socket returns one that joins what comes.
func socket(t *testing.T, network, at string) *Conn {
	t.Helper()
	udp, err := net.ListenPacket(network, at)
	if err != nil {
		t.Skip(err) // no IPv6
	}
	t.Cleanup(func() { udp.Close() })
	c, ok := Join(udp.(*net.UDPConn)).(*Conn)
	if !ok {
		t.Skip("the kernel does not join datagrams")
	}
	return c
}

// caller returns a socket that sends to it.
func caller(t *testing.T, to net.Addr) *net.UDPConn {
	t.Helper()
	conn, err := net.Dial("udp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.UDPConn)
}

// send sends data as datagrams of a size, which take their way through the kernel in one piece. What is sent in several is read
// before the next: order among them is not the kernel's to keep.
func send(t *testing.T, conn *net.UDPConn, data []byte, size uint16) {
	t.Helper()
	if _, _, err := conn.WriteMsgUDP(data, control(unix.UDP_SEGMENT, 2, uint32(size)), nil); err != nil {
		t.Fatal(err)
	}
}

// control is a control message of UDP.
func control(kind int32, length int, value uint32) []byte {
	m := make([]byte, unix.CmsgSpace(length))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&m[0]))
	h.Level, h.Type = unix.IPPROTO_UDP, kind
	h.SetLen(unix.CmsgLen(length))
	if length == 2 {
		binary.NativeEndian.PutUint16(m[unix.CmsgLen(0):], uint16(value))
	} else {
		binary.NativeEndian.PutUint32(m[unix.CmsgLen(0):], value)
	}
	return m
}

// message has room for datagrams of a size.
func message(size int) ipv4.Message {
	return ipv4.Message{Buffers: [][]byte{make([]byte, size)}, OOB: make([]byte, 128)}
}

// read reads n datagrams, by so many at a time.
func read(t *testing.T, c *Conn, n, size, batch int) (all []ipv4.Message) {
	t.Helper()
	for len(all) < n {
		ms := make([]ipv4.Message, batch)
		for i := range ms {
			ms[i] = message(size)
		}
		got, err := c.ReadBatch(ms, 0)
		if err != nil || got == 0 {
			t.Fatalf("%d datagrams, and then %d: %v", len(all), got, err)
		}
		all = append(all, ms[:got]...)
	}
	if len(all) > n || len(c.come) > 0 {
		t.Fatalf("%d datagrams, more than the %d that were sent", len(all)+len(c.come), n)
	}
	return all
}

func text(m ipv4.Message) []byte { return m.Buffers[0][:m.N] }

func numbered(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i / 7)
	}
	return data
}

// script reads what was written down, so many at a time.
type script struct {
	ms    []ipv4.Message
	batch int
}

func (s *script) ReadBatch(ms []ipv4.Message, _ int) (int, error) {
	n := min(len(ms), s.batch, len(s.ms))
	for i, m := range s.ms[:n] {
		ms[i].Addr, ms[i].N, ms[i].NN = m.Addr, copy(ms[i].Buffers[0], m.Buffers[0]), copy(ms[i].OOB, m.OOB)
	}
	s.ms = s.ms[n:]
	return n, nil
}

func TestWhatIsJoinedComesApart(t *testing.T) {
	data, other := numbered(60_000), control(99, 4, 7)
	whole := []struct {
		length, size int
		oob          []byte // instead of the size's
	}{{length: 6077, size: 1200}, {length: 1200, size: 1200}, {length: 0}, {length: 5}, {length: 2400, size: 1200}, {length: 1201, size: 1200}, {length: 60_000, size: 1400},
		{length: 3, size: 1}, {length: 900, oob: []byte("no message")}, {length: 700, oob: other}, {length: 2, oob: control(unix.UDP_GRO, 4, 0)}, {length: 700, oob: control(unix.UDP_GRO, 2, 600)}}
	for _, batch := range []int{1, 3, 8} {
		for _, at := range []int{1, 2, 8, 20} {
			c, in := socket(t, "udp4", "127.0.0.1:0"), &script{batch: batch}
			c.in = in
			var want []ipv4.Message
			for _, w := range whole {
				addr, size, oob := &net.UDPAddr{}, w.length, w.oob
				if w.size > 0 {
					size, oob = w.size, slices.Concat(other, control(unix.UDP_GRO, 4, uint32(w.size)), other)
				} else if bytes.HasPrefix(oob, control(unix.UDP_GRO, 4, 0)) {
					size = 1
				}
				in.ms = append(in.ms, ipv4.Message{Addr: addr, Buffers: [][]byte{data[:w.length]}, OOB: oob})
				for left := data[:w.length]; ; {
					n := min(size, len(left))
					want = append(want, ipv4.Message{Addr: addr, Buffers: [][]byte{left[:n]}, NN: w.size})
					if left = left[n:]; len(left) == 0 {
						break
					}
				}
			}
			for i, m := range read(t, c, len(want), 1452, at) {
				if !bytes.Equal(text(m), want[i].Buffers[0]) || m.Addr != want[i].Addr {
					t.Errorf("by %d and %d: datagram %d has %d bytes, and %d were sent", batch, at, i, m.N, len(want[i].Buffers[0]))
				}
				if want[i].NN > 0 && !bytes.Equal(m.OOB[:m.NN], slices.Concat(other, other)) {
					t.Errorf("datagram %d has the control messages %q", i, m.OOB[:m.NN])
				}
			}
		}
	}
}

func TestDatagramsComeAsTheyWereSent(t *testing.T) {
	for _, by := range []struct{ name, network, listen, from string }{
		{"v4", "udp4", "127.0.0.1:0", "127.0.0.1"},
		{"v6", "udp6", "[::1]:0", "::1"},
		{"both", "udp", ":0", "127.0.0.1"},
	} {
		t.Run(by.name, func(t *testing.T) {
			c := socket(t, by.network, by.listen)
			port := c.LocalAddr().(*net.UDPAddr).Port
			data := numbered(5*1200 + 77)
			for range 2 {
				from := caller(t, &net.UDPAddr{IP: net.ParseIP(by.from), Port: port})
				send(t, from, data, 1200)
				all := read(t, c, 6, 1452, 4)
				for i, want := range slices.Collect(slices.Chunk(data, 1200)) {
					if !bytes.Equal(text(all[i]), want) {
						t.Errorf("datagram %d has %d bytes, and %d were sent", i, all[i].N, len(want))
					}
					if at := all[i].Addr.(*net.UDPAddr).AddrPort(); at.Port() != from.LocalAddr().(*net.UDPAddr).AddrPort().Port() || at.Addr().Unmap().String() != by.from {
						t.Errorf("datagram %d is from %v", i, at)
					}
				}
				if all[0].Addr != all[5].Addr {
					t.Error("the kernel did not join them: nothing was tested")
				}
				from.Write(nil)
				if one := read(t, c, 1, 1452, 4)[0]; one.N != 0 || one.Addr == all[5].Addr {
					t.Errorf("an empty datagram has %d bytes", one.N)
				}
			}
		})
	}
}

// Congestion marks are what quic-go reads of control messages.
func TestEachDatagramHasItsMark(t *testing.T) {
	c := socket(t, "udp4", "127.0.0.1:0")
	set(t, c.UDPConn, unix.IP_RECVTOS, 1)
	set(t, c.UDPConn, unix.IP_PKTINFO, 1)
	from := caller(t, c.LocalAddr())
	var all []ipv4.Message
	for _, mark := range []int{2, 3} {
		set(t, from, unix.IP_TOS, mark)
		send(t, from, numbered(3000), 1400)
		all = append(all, read(t, c, 3, 1452, 8)...)
	}
	for i, m := range all {
		said, err := unix.ParseSocketControlMessage(m.OOB[:m.NN])
		if err != nil || len(said) != 2 {
			t.Fatalf("datagram %d has the control messages %v: %v", i, said, err)
		}
		for _, one := range said {
			if one.Header.Type == unix.IP_TOS && one.Data[0] != byte(2+i/3) {
				t.Errorf("datagram %d has the mark %d", i, one.Data[0])
			}
			if one.Header.Level != unix.IPPROTO_IP {
				t.Errorf("datagram %d says what concerns the whole", i)
			}
		}
	}
}

func set(t *testing.T, conn *net.UDPConn, option, value int) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, option, value) })
	if err != nil {
		t.Fatal(err)
	}
}

func TestLongDatagramIsCut(t *testing.T) {
	c := socket(t, "udp4", "127.0.0.1:0")
	from, data := caller(t, c.LocalAddr()), numbered(4000)
	send(t, from, data, 1500)
	all := read(t, c, 3, 1452, 8)
	from.Write(data)
	all = append(all, read(t, c, 1, 1452, 8)...)
	for i, want := range [][]byte{data[:1452], data[1500:2952], data[3000:], data[:1452]} {
		if !bytes.Equal(text(all[i]), want) {
			t.Errorf("datagram %d has %d bytes", i, all[i].N)
		}
	}
}

func TestReadEnds(t *testing.T) {
	c := socket(t, "udp4", "127.0.0.1:0")
	wait := func() <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := c.ReadBatch([]ipv4.Message{message(100)}, 0)
			done <- err
		}()
		return done
	}
	done := wait()
	c.SetReadDeadline(time.Unix(1, 0))
	var failed net.Error
	if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &failed) || !failed.Timeout() {
		t.Errorf("at the deadline: %v", err)
	}
	c.SetReadDeadline(time.Time{})
	send(t, caller(t, c.LocalAddr()), []byte("again"), 2)
	if got := read(t, c, 3, 100, 8); string(text(got[2])) != "n" {
		t.Errorf("behind a deadline: %q", text(got[2]))
	}
	done = wait()
	c.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("when it is closed: %v", err)
	}
}

func TestDatagramsCostNoAllocation(t *testing.T) {
	if race.Enabled {
		t.Skip("pools forget")
	}
	c := socket(t, "udp4", "127.0.0.1:0")
	from, data, ms := caller(t, c.LocalAddr()), numbered(40*1000), make([]ipv4.Message, 8)
	for i := range ms {
		ms[i] = message(1452)
	}
	each := testing.AllocsPerRun(50, func() {
		send(t, from, data, 1000)
		for left := 40; left > 0; {
			n, err := c.ReadBatch(ms, 0)
			if err != nil {
				t.Fatal(err)
			}
			left -= n
		}
	})
	if each > 10 { // the sender's address and what sends
		t.Errorf("%v allocations for 40 datagrams", each)
	}
}
