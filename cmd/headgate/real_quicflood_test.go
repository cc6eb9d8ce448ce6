package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/sdk/client"
	"github.com/headgate-io/headgate/sdk/session"
)

// crowd is many addresses from which handshakes are begun.
type crowd struct {
	t       *testing.T
	packets *initials
	all     []*net.UDPConn
	retries atomic.Int64
	answers atomic.Int64 // that are no Retry
}

func newCrowd(t *testing.T, p *process, size int) *crowd {
	t.Helper()
	to, err := net.ResolveUDPAddr("udp", strings.TrimPrefix(p.quicURL(), "https://"))
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{t: t, packets: newInitials(t)}
	for n := range size {
		conn := stranger(t, n, to)
		c.all = append(c.all, conn)
		go func() {
			b := make([]byte, 2048)
			for {
				n, err := conn.Read(b)
				if err != nil {
					return
				}
				if _, _, ok := retryOf(b[:n]); ok {
					c.retries.Add(1)
				} else {
					c.answers.Add(1)
				}
			}
		}()
	}
	return c
}

// flood begins n handshakes, which nobody goes on with.
func (c *crowd) flood(n int) {
	for i := range n {
		c.all[i%len(c.all)].Write(c.packets.packet(fresh(), nil)) // an error: its buffer is full
	}
}

// honest sends an event in a session, which ends well.
func (p *process) honest(n int) {
	p.t.Helper()
	c, err := client.New(client.Config{Address: strings.TrimPrefix(p.quicURL(), "https://"), Stream: "s", Framing: session.JSON, TLS: &tls.Config{InsecureSkipVerify: true}})
	if err != nil {
		p.t.Fatal(err)
	}
	b, err := c.Send(p.t.Context(), fmt.Append(nil, n))
	if err == nil {
		err = c.Close(p.t.Context())
	}
	if err != nil {
		p.t.Fatal(err)
	}
	if r, err := b.Wait(p.t.Context()); err != nil || r.Accepted != 1 {
		p.t.Errorf("%+v %v", r, err)
	}
}

// Handshakes that many addresses begin and nobody goes on with: above a few, an address has to be proved, which costs no memory, and
// who proves it is served. HEADGATE_HANDSHAKES says how many there are, 100,000 in make test-quic-floods.
func TestF52J07FloodOfInitials(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("HEADGATE_HANDSHAKES"))
	long := err == nil
	if !long {
		n = 2000
	}
	p := startGateway(t, t.TempDir(), onQUIC...)
	p.honest(0)
	work := func() { p.post("s", strings.Repeat("{}\n", 50_000)) } // what is garbage is seen when there is work
	for range 20 {
		work()
	}
	base, cpu := p.restMemory(), p.processorTime()
	c := newCrowd(t, p, 500)
	for round := 1; c.retries.Load() == 0 || round*1000 <= n; round++ {
		c.flood(1000)
		if round == 1 {
			p.honest(round)
		}
	}
	p.honest(n)
	peak, spent := p.peakMemory(), p.processorTime()-cpu
	t.Logf("%d handshakes begun: %d Retry, %d other datagrams; memory %d KiB, then at most %d KiB; %v of the processor", n, c.retries.Load(), c.answers.Load(), base>>10, peak>>10, spent)
	if peak-base > 64<<20 {
		t.Errorf("%d half-open handshakes take %d KiB", n, (peak-base)>>10)
	}
	if long {
		began := time.Now()
		for p.memory("VmRSS")-base > 8<<20 && time.Since(began) < time.Minute {
			<-time.After(time.Second)
			work()
		}
		t.Logf("%v later: %d KiB", time.Since(began).Round(time.Second), p.memory("VmRSS")>>10)
		if left := p.memory("VmRSS") - base; left > 8<<20 {
			t.Errorf("after a minute %d KiB more are left", left>>10)
		}
	}
}

// The token of a Retry is good for the address that it was sent to, and nothing else goes past it.
func TestF52RetryTokensAreForTheirAddress(t *testing.T) {
	p := startGateway(t, t.TempDir(), onQUIC...)
	c := newCrowd(t, p, 50)
	to := c.all[0].RemoteAddr().(*net.UDPAddr)
	mine, other := stranger(t, 1000, to), stranger(t, 1001, to)
	// retried asks until an address has to be proved.
	retried := func(conn *net.UDPConn, token []byte) (id, fresh []byte) {
		for range 200 {
			c.flood(300)
			conn.Write(c.packets.packet([]byte("notproved"), token))
			for d := heard(conn, 100*time.Millisecond); d != nil; d = heard(conn, 10*time.Millisecond) {
				if id, token, ok := retryOf(d); ok {
					return id, token
				}
			}
		}
		t.Fatal("no Retry comes")
		return nil, nil
	}
	// accepted reports whether a handshake goes on: a CONNECTION_CLOSE is not padded (RFC 9000 section 14.1).
	accepted := func(conn *net.UDPConn, packet []byte) bool {
		for range 200 {
			conn.Write(packet)
			if d := heard(conn, time.Second); d != nil {
				if _, _, again := retryOf(d); !again {
					return len(d) >= 1200
				}
			}
		}
		t.Fatal("no answer comes")
		return false
	}
	id, token := retried(mine, nil)
	for heard(mine, 10*time.Millisecond) != nil { // of before
	}
	if accepted(other, c.packets.packet(id, token)) {
		t.Error("from another address the token is taken")
	}
	if !accepted(mine, c.packets.packet(id, token)) {
		t.Error("from its own address the token is not taken")
	}
	damaged := append([]byte(nil), token...)
	damaged[len(damaged)-1] ^= 1
	retried(other, damaged) // as if there were none
}

// processorTime is what the process has used, in both modes.
func (p *process) processorTime() time.Duration {
	p.t.Helper()
	doc, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.t.Skipf("the system does not tell the processor time of a process: %v", err)
	}
	var user, sys int64
	fields := strings.Fields(string(doc[strings.LastIndexByte(string(doc), ')')+1:]))
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &sys); err != nil {
		p.t.Fatal(err)
	}
	return time.Duration(user+sys) * 10 * time.Millisecond // USER_HZ is 100 on every Linux that Go runs on
}
