package quicdoor

import (
	"math"
	"runtime/debug"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

// share is how many streams a connection may have at a time that comes while there are fewer than so many others.
type share struct {
	others  int64
	streams int64 // that the client opens
	uni     int64 // likewise; HTTP/3 needs three: control, and two of QPACK
}

// shares bound what a crowd holds that opens all streams that it may and sends a byte on each, which is 7 to 11 KiB a stream, whether
// its header ends or not: 20,000 connections have 108,000 streams, and not 1,280,000. How many each may have is decided when it comes and stays: who
// has 64 came when there were fewer than 256, so the first 256 of those that are there at any time have them at most.
var shares = []share{{256, mostStreams, 8}, {1280, 16, 4}, {math.MaxInt64, 4, 4}} // read only

// settings returns those of a connection that comes now.
func (d *Door) settings(*quic.ClientInfo) (*quic.Config, error) {
	here := d.here.count()
	for i, s := range d.cfg.shares {
		if here < s.others {
			return d.configs[i], nil
		}
	}
	return d.configs[len(d.configs)-1], nil
}

// configure makes the settings of each share, and returns those that choose among them.
func (d *Door) configure() *quic.Config {
	d.configs = make([]*quic.Config, len(d.cfg.shares))
	for i, s := range d.cfg.shares {
		c := d.common()
		c.MaxIncomingStreams, c.MaxIncomingUniStreams = s.streams, s.uni
		d.configs[i] = c
	}
	all := d.common()
	all.GetConfigForClient = d.settings
	return all
}

// A crowd is so many connections more, or less, than there were when memory was collected last, and a quarter of those. It has settled when
// in a while no more than a few come or go.
const (
	crowd      = 256
	crowdPart  = 4
	settleTime = time.Second
	settleFew  = 16
)

// presence counts connections, from their first packet on, and has what is garbage collected and given back to the system, once, when a
// crowd has come or gone and settled. A handshake leaves more than its connection holds, and a heap in which nothing happens is not
// collected. Connections that come and go evenly are no crowd, however many they are.
type presence struct {
	collect func()

	mu    sync.Mutex
	now   int64
	last  int64 // when it was collected last
	seen  int64 // when it was looked last
	armed bool  // it will be looked
}

func (p *presence) count() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// move counts connections that come, or go.
func (p *presence) move(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now += n
	if !p.armed && apart(p.now, p.last) >= max(crowd, p.last/crowdPart) {
		p.armed = true
		p.wait()
	}
}

// wait has it looked after a while; p.mu is held.
func (p *presence) wait() {
	p.seen = p.now
	time.AfterFunc(settleTime, p.look)
}

func (p *presence) look() {
	p.mu.Lock()
	calm := apart(p.now, p.seen) <= settleFew
	if calm {
		p.armed, p.last = false, p.now
	} else {
		p.wait()
	}
	p.mu.Unlock()
	if calm {
		p.collect()
	}
}

// collect gives back what pools hold, too: that is garbage behind the second collection.
func collect() {
	debug.FreeOSMemory()
	debug.FreeOSMemory()
}

func apart(a, b int64) int64 { return max(a-b, b-a) }
