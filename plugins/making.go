package plugins

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// making is what is known of how instances of a pool are made. A guest can start well and fail to later, for good or at random:
// then it is tried again, by one at a time and with pauses, so that a start that takes all its time burns no core.
type making struct {
	allow  func(caller uint64) bool // whether one may be made now in place of another; nil: always
	failed func(err error)          // is told each time; nil: nobody
	cost   atomic.Int64             // nanoseconds that the guest computed for the newest instance

	mu      sync.Mutex // guards the rest
	failing error      // of the last try
	trying  bool       // somebody tries again
	until   time.Time  // nobody tries before
}

const (
	firstPause = time.Second / replacementsPerSecond
	pauseOver  = 10 // times what the try took: so much of a core it may have
	mostPause  = 30 * time.Second
)

// notMade is the error of an instance that can't be made, by the guest's fault.
type notMade struct{ cause error }

// Error says why.
func (e *notMade) Error() string { return fmt.Sprintf("an instance can't be made: %v", e.cause) }

// begin asks for one more try; paid says that it was counted as a replacement already.
func (m *making) begin(caller uint64, paid bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failing == nil {
		return nil
	}
	if m.trying || time.Now().Before(m.until) || !paid && m.allow != nil && !m.allow(caller) {
		return &notMade{m.failing}
	}
	m.trying = true
	return nil
}

// end notes how a try came out.
func (m *making) end(err error, took time.Duration) {
	m.mu.Lock()
	m.trying, m.failing = false, err
	if err != nil {
		m.until = time.Now().Add(min(max(firstPause, pauseOver*took), mostPause))
	}
	m.mu.Unlock()
	if err != nil && m.failed != nil {
		m.failed(err)
	}
}

// trouble is why the last instance could not be made, nil when it could.
func (m *making) trouble() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failing
}

// build makes one instance, unless too many could not be made lately.
func (p *pool) build(caller uint64, paid bool) (*instance, error) {
	if err := p.making.begin(caller, paid); err != nil {
		return nil, err
	}
	began := time.Now()
	in, err := p.make(context.Background())
	p.making.end(err, time.Since(began))
	if err != nil {
		return nil, &notMade{err}
	}
	p.making.cost.Store(int64(in.guest.setUp))
	return in, nil
}

// spareOrBuilt returns an instance that was made before, or makes one.
func (p *pool) spareOrBuilt(caller uint64, paid bool) (*instance, error) {
	defer p.refill()
	select {
	case in := <-p.spare:
		return in, nil
	default:
		return p.build(caller, paid)
	}
}

// left is how many instances there are.
func (p *pool) left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size - p.empty
}
