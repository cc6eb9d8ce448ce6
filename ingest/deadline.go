package ingest

import (
	"context"
	"sync"
	"time"
)

// deadline is the context under which a stream takes a batch. It is a context with a deadline that costs nothing until
// somebody waits on it: a request that asks for ack=accepted mostly has nothing to wait for.
type deadline struct {
	context.Context // the server's
	until           time.Time

	mu     sync.Mutex
	waited context.Context // with the deadline; nil when nobody has waited yet
	cancel context.CancelFunc
	ended  bool
}

// closed is the channel of what has ended.
var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Deadline implements context.Context.
func (d *deadline) Deadline() (time.Time, bool) { return d.until, true }

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waited == nil {
		if d.ended {
			return closed
		}
		d.waited, d.cancel = context.WithDeadline(d.Context, d.until)
	}
	return d.waited.Done()
}

// Err implements context.Context.
func (d *deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.waited != nil:
		return d.waited.Err()
	case d.ended:
		return context.Canceled
	case d.Context.Err() == nil && !time.Now().Before(d.until): // also while nobody waits: guests' work is asked between calls
		return context.DeadlineExceeded
	}
	return d.Context.Err()
}

// end cancels what still waits.
func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	if d.cancel != nil {
		d.cancel()
	}
}
