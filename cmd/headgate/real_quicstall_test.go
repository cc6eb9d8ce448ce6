package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// hundreds opens n connections that speak a protocol, from as many addresses as they need, and has do something with each.
func (p *process) hundreds(n int, protocol string, wrap func(net.PacketConn) net.PacketConn, do func(*quic.Conn)) {
	t := p.t
	t.Helper()
	to, err := net.ResolveUDPAddr("udp", strings.TrimPrefix(p.quicURL(), "https://"))
	if err != nil {
		t.Fatal(err)
	}
	secure := &tls.Config{InsecureSkipVerify: true, ServerName: "localhost", NextProtos: []string{protocol}}
	const each, hands = 500, 16
	for from := 0; from < n; from += each {
		conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 2, byte(from/each), 1)})
		if err != nil {
			t.Skipf("this machine has not all addresses of 127.0.0.0/8: %v", err)
		}
		tr := &quic.Transport{Conn: wrap(conn)}
		t.Cleanup(func() { tr.Close(); conn.Close() })
		var next atomic.Int64
		var all sync.WaitGroup
		for range hands {
			all.Go(func() {
				for next.Add(1) <= int64(min(each, n-from)) {
					for {
						c, err := tr.Dial(t.Context(), to, secure, &quic.Config{KeepAlivePeriod: 10 * time.Second, HandshakeIdleTimeout: time.Minute})
						if err == nil {
							do(c)
							break
						}
						if t.Context().Err() != nil || strings.Contains(err.Error(), "closed") {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		all.Wait()
	}
}

func plain(c net.PacketConn) net.PacketConn { return c }

// A stall is what a client opens all the streams with that it may, and sends a bit of, before it does nothing any more.
type stall struct {
	protocol string
	begins   []byte // each stream
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
		"sessions": {session.Protocol, []byte{byte(session.TypeHello)}, 16 << 10},
		"HTTP3":    {http3.NextProtoH3, []byte{1, 0x40, 0x64, 0}, 16 << 10}, // HEADERS of 100 bytes
	} {
		t.Run(name, s.test)
	}
}

func (s stall) test(t *testing.T) {
	n, _ := stalled(20)
	p := startGateway(t, t.TempDir(), append(onQUIC, "--set", fmt.Sprintf("http.max_connections=%d", n+10),
		"--set", "http.read_timeout=1h", "--set", "http.idle_timeout=1h", "--set", "http.max_connection_age=1h")...) // they are all there at once
	p.honest(0)
	base := p.restMemory()
	var streams, more atomic.Int64
	began := time.Now()
	p.hundreds(n, s.protocol, plain, func(c *quic.Conn) {
		for {
			str, err := c.OpenStream()
			if err != nil { // it would wait
				more.Add(1)
				return
			}
			streams.Add(1)
			str.Write(s.begins)
		}
	})
	p.honest(1)
	peak, got, want := p.peakMemory(), int(streams.Load()), streamsOf(n)
	t.Logf("%d connections, %d streams in %v: %d KiB a connection, memory %d KiB, then at most %d KiB", n, got, time.Since(began).Round(time.Second), (peak-base)>>10/int64(n), base>>10, peak>>10)
	// One that is honest counts, too; and where sessions are turned away others may be opened in their place.
	if got < want-2*64 || got > want+4*max(n-1280, 0) || int(more.Load()) != n {
		t.Errorf("%d connections have %d streams, should have %d", n, got, want)
	}
	if most := base + int64(n)*(128<<10) + int64(got)*s.each + 64<<20; peak > most {
		t.Errorf("%d KiB, at most %d KiB are to be expected", peak>>10, most>>10)
	}
	open := regexp.MustCompile(`(?m)^headgate_http_connections (\d+)$`).FindStringSubmatch(p.get("/metrics"))
	if open == nil {
		t.Fatal("no gauge of connections")
	}
	if here, _ := strconv.Atoi(open[1]); here < n {
		t.Errorf("%d connections are there of %d", here, n)
	}
}
