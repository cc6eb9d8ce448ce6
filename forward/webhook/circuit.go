package webhook

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/headgate-io/headgate/forward"
)

// circuit decides whether a node is sent anything. It is closed while the node answers. After enough failures in a
// row, or at once when the node is misconfigured or asks for a pause, it opens: all the node's lanes wait. When the
// time is over one run goes out as a probe, and what becomes of it closes the circuit or opens it for longer.
type circuit struct {
	node string
	log  *slog.Logger

	mu       sync.Mutex
	failures int // in a row
	open     bool
	until    time.Time // while open: when the next probe may go
	probing  bool      // while open: a probe is out
	since    time.Time // while open: of the first failure in a row
	cause    error     // while open: the last failure

	misconfigured bool // while open: the last failure was that
}

const (
	enough     = 5 // failures in a row that open the circuit
	firstBreak = 200 * time.Millisecond
	longBreak  = time.Second           // the lanes add a random wait of up to 3 s: a healed node is busy within 5 s
	probeBreak = 50 * time.Millisecond // while a probe is out, which the lane's own back-off mostly covers
	mostPause  = time.Minute           // more is not waited for on a node's word: it is asked again
)

// entry is a run on its way to the node.
type entry struct{ probe bool }

// enter lets a run through, or says that the circuit is open.
func (c *circuit) enter(now time.Time) (entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open {
		return entry{}, nil
	}
	wait := c.until.Sub(now)
	if c.probing {
		wait = probeBreak
	}
	if wait > 0 {
		return entry{}, &forward.SendError{Code: unavailable, Reason: "circuit_open", After: wait, Err: c.cause}
	}
	c.probing = true
	return entry{probe: true}, nil
}

// leave is for a run of which nothing can be learned about the node.
func (c *circuit) leave(e entry) {
	if e.probe {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.probing = false
	}
}

// succeeded is for a run that the node has answered as it should: it took the content, or refused it.
func (c *circuit) succeeded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open {
		c.log.Info("the node answers again", "failures", c.failures)
	}
	c.failures, c.open, c.probing, c.cause, c.misconfigured = 0, false, false, nil, false
}

// failed is for a run that the node did not take: it returns how long to wait. A hard failure opens the circuit at
// once, and so does a node that asks for a pause.
func (c *circuit) failed(e entry, now time.Time, f failure) (wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open && !e.probe {
		return max(c.until.Sub(now), 0) // it was under way when the circuit opened
	}
	if c.failures == 0 {
		c.since = now
	}
	c.failures++
	c.probing = false
	if c.failures < enough && !f.misconfigured && f.after == 0 {
		return 0
	}
	wait = max(pauseAfter(c.failures), min(f.after, mostPause))
	c.cause, c.until = f.err, now.Add(wait)
	if !c.open || f.misconfigured != c.misconfigured {
		c.open, c.misconfigured = true, f.misconfigured
		c.say(f)
	}
	return wait
}

// say logs that the circuit has opened, or is open for another reason: for a misconfigured node somebody is needed.
func (c *circuit) say(f failure) {
	if f.misconfigured {
		c.log.Error("the node is misconfigured, or its URL is wrong: it gets nothing but probes until one gets through", "error", f.err)
		return
	}
	c.log.Warn("the node gets nothing but probes until one gets through", "error", f.err)
}

// pauseAfter returns how long the circuit stays open after so many failures in a row.
func pauseAfter(failures int) time.Duration {
	return min(firstBreak<<min(max(failures-enough, 0), 10), longBreak)
}

// err names the node while its circuit is open.
func (c *circuit) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open {
		return nil
	}
	return fmt.Errorf("node %s takes nothing since %s: %w", c.node, c.since.UTC().Format(time.RFC3339), c.cause)
}
