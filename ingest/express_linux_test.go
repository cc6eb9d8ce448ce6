package ingest

import (
	"bufio"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/headgate-io/headgate/internal/race"
)

// counted counts what is asked of the poller.
type counted struct {
	syscall.RawConn
	reads int
}

func (c *counted) Read(f func(uintptr) bool) error {
	c.reads++
	return c.RawConn.Read(f)
}

// pair returns a client and the connection that express is to serve, which nobody has read from yet.
func pair(t *testing.T) (*client, *express, *conn) {
	t.Helper()
	server, err := New(Config{}, fakeGate{"s": quietStream()}, Deps{})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialed, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dialed.SetDeadline(time.Now().Add(patience))
	raw, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialed.Close(); raw.Close() })
	c := newConn(raw, newRoster(&server.cfg), nil)
	c.useExpress(server.fast)
	return &client{t, dialed, bufio.NewReader(dialed)}, server.fast, c
}

// What has come is read once, and what comes is waited for without a look at what is there.
func TestExpressWaitsWithoutLooking(t *testing.T) {
	from, x, c := pair(t)
	raw := &counted{RawConn: c.express.raw}
	c.express.raw = raw
	over := make(chan error, 1)
	go func() { over <- x.run(c) }()
	for range 20 {
		from.send(request11(events, "1\n", ndjson)).answer().want(t, 200, "")
	}
	from.Conn.Close()
	if err := <-over; err != io.EOF {
		t.Errorf("it ended with %v", err)
	}
	if raw.reads != 1 {
		t.Errorf("it began to read %d times", raw.reads)
	}
}

// The end that comes together with a request, so that the poller tells of both at once, is seen.
func TestExpressSeesTheEndBehindARequest(t *testing.T) {
	for range 100 {
		from, x, c := pair(t)
		over := make(chan error, 1)
		go func() { over <- x.run(c) }()
		from.send(request11(events, "1\n", ndjson)).Conn.(*net.TCPConn).CloseWrite()
		from.answer().want(t, 200, "")
		select {
		case err := <-over:
			if err != io.EOF {
				t.Fatalf("it ended with %v", err)
			}
		case <-time.After(patience):
			t.Fatal("it waits for what has come")
		}
	}
}

// halfClose ends what from sends, and returns when c has that.
func halfClose(t *testing.T, from *client, c *conn) {
	t.Helper()
	if err := from.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	const closeWait = 8 // TCP_CLOSE_WAIT of the kernel's tcp_states.h
	until(t, "the end of what was sent", func() (has bool) {
		err := c.express.raw.Control(func(fd uintptr) {
			info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			has = err == nil && info.State == closeWait
		})
		return err == nil && has
	})
}

func TestReceiveSaysWhetherThatIsAll(t *testing.T) {
	from, _, c := pair(t)
	var p [4]byte
	read := func() (n int, all bool) {
		t.Helper()
		if err := c.express.raw.Read(func(fd uintptr) (ok bool) {
			var err error
			n, all, err = receive(int(fd), p[:])
			return err != syscall.EAGAIN
		}); err != nil {
			t.Fatal(err)
		}
		return n, all
	}
	from.send("12345")
	if n, all := read(); n != 4 || all {
		t.Errorf("4 of 5 bytes: %d, all %v", n, all)
	}
	if n, all := read(); n != 1 || !all {
		t.Errorf("the last one: %d, all %v", n, all)
	}
	from.send("6")
	halfClose(t, from, c)
	if n, all := read(); n != 1 || all {
		t.Errorf("one before the end: %d, all %v", n, all)
	}
	if n, all := read(); n != 0 || all {
		t.Errorf("the end: %d, all %v", n, all)
	}
	if race.Enabled {
		return
	}
	fd := -1
	if each := testing.AllocsPerRun(100, func() { receive(fd, p[:]) }); each > 0 {
		t.Errorf("%v allocations", each)
	}
}
