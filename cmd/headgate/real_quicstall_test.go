package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

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

// hundreds opens n connections, from as many addresses as they need, and has do something with each.
func (p *process) hundreds(n int, wrap func(net.PacketConn) net.PacketConn, do func(*quic.Conn)) {
	t := p.t
	t.Helper()
	to, err := net.ResolveUDPAddr("udp", strings.TrimPrefix(p.quicURL(), "https://"))
	if err != nil {
		t.Fatal(err)
	}
	secure := &tls.Config{InsecureSkipVerify: true, ServerName: "localhost", NextProtos: []string{session.Protocol}}
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

// Connections that open all the streams they may, with a byte on each, and then do nothing. What they hold is bounded, others are
// served, and each stream is ended.
func TestF53J06StreamsThatStall(t *testing.T) {
	n, _ := stalled(20)
	p := startGateway(t, t.TempDir(), append(onQUIC, "--set", fmt.Sprintf("http.max_connections=%d", n+10))...)
	p.honest(0)
	base := p.restMemory()
	var streams, more atomic.Int64
	p.hundreds(n, plain, func(c *quic.Conn) {
		for {
			str, err := c.OpenStream()
			if err != nil { // it would wait
				more.Add(1)
				return
			}
			streams.Add(1)
			str.Write([]byte{byte(session.TypeHello)})
		}
	})
	p.honest(1)
	peak := p.peakMemory()
	t.Logf("%d connections, %d streams: %d KiB a connection, memory %d KiB, then at most %d KiB", n, streams.Load(), (peak-base)>>10/int64(n), base>>10, peak>>10)
	if int(streams.Load()) != 64*n || int(more.Load()) != n {
		t.Errorf("%d connections have %d streams", n, streams.Load())
	}
	if most := base + int64(n)*(1<<20) + 320<<20; peak > most {
		t.Errorf("%d KiB, at most %d KiB are to be expected", peak>>10, most>>10)
	}
}
