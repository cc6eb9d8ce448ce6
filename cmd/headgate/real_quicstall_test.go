package main

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/headgate-io/headgate/sdk/session"
)

// stalled says how many connections are to be opened: HEADGATE_STALLED, else few.
func stalled(few int) (n int, long bool) {
	n, err := strconv.Atoi(os.Getenv("HEADGATE_STALLED"))
	if err != nil {
		return few, false
	}
	return n, true
}

// A stall is what a client opens all the streams with that it may, and sends a bit of, before it does nothing any more.
type stall struct {
	protocol string
	begins   []byte // each stream: a frame of 100 bytes, which is never whole
	each     int64  // bytes that a stream may cost
}

// streamsOf is how many streams n connections may open, one after the other.
func streamsOf(n int) int {
	return 64*min(n, 256) + 16*max(min(n, 1280)-256, 0) + 4*max(n-1280, 0)
}

// Connections that open all the streams they may, with a few bytes on each, and then do nothing. The more there are, the fewer streams
// they may have. What they hold is bounded, and others are served.
func TestF53J06StreamsThatStall(t *testing.T) {
	for name, s := range map[string]stall{
		"sessions": {session.Protocol, []byte{byte(session.TypeHello), 100}, 16 << 10},
		"HTTP3":    {http3.NextProtoH3, []byte{1, 0x40, 100, 0}, 16 << 10}, // HEADERS
	} {
		t.Run(name, s.test)
	}
}

func (s stall) test(t *testing.T) {
	n, _ := stalled(20)
	p := startGateway(t, t.TempDir(), append(onQUIC, "--set", fmt.Sprintf("http.max_connections=%d", n+n/4+10),
		"--set", "http.read_timeout=1h", "--set", "http.idle_timeout=1h", "--set", "http.max_connection_age=1h", "--set", "quic.idle_timeout=1h")...) // they are all there at once
	p.honest(0)
	base, spent := p.restMemory(), p.processorTime()
	began := time.Now()
	c := p.throng(n, s.protocol, func(c *quic.Conn) (all []*quic.Stream) {
		for {
			str, err := c.OpenStream()
			if err != nil { // it would wait
				return all
			}
			str.Write(s.begins)
			all = append(all, str)
		}
	})
	took := time.Since(began).Round(time.Second)
	p.honest(1)
	peak, got, want, again := p.peakMemory(), int(c.streams.Load()), streamsOf(n), int(c.again.Load())
	t.Logf("%d connections, %d streams in %v, %d of them again %s; the gateway worked %v: %d KiB a connection, memory %d KiB, then at most %d KiB", n, got,
		took, again, c.troubles(), (p.processorTime() - spent).Round(100*time.Millisecond), (peak-base)>>10/int64(n), base>>10, peak>>10)
	// One that is honest counts, too; one that is opened again has fewer, but 4 at least; and where sessions are turned away others may be
	// opened in their place.
	if got < max(want-64*(2+again), 4*n) || got > want+4*max(n-1280, 0) {
		t.Errorf("%d connections have %d streams, should have %d", n, got, want)
	}
	if most := base + int64(n)*(128<<10) + int64(got)*s.each + 64<<20; peak > most {
		t.Errorf("%d KiB, at most %d KiB are to be expected", peak>>10, most>>10)
	}
}
