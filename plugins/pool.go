package plugins

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// pool keeps a fixed number of instances of one step ready, and perhaps one more to replace one that trapped.
type pool struct {
	make      func(context.Context) (*instance, error)
	size      int
	spare     chan *instance
	wantSpare bool
	refilling atomic.Bool
	refills   sync.WaitGroup

	making making

	mu    sync.Mutex  // guards the rest
	free  []*instance // all are there
	empty int         // places for more, that are not there
	queue queue       // who waits for one; empty while some are free
}

func newPool(size int, make_ func(context.Context) (*instance, error)) *pool {
	return &pool{make: make_, size: size, spare: make(chan *instance, 1)}
}

// fill makes the instances.
func (p *pool) fill(ctx context.Context, spare bool) error {
	for range p.size {
		in, err := p.make(ctx)
		if err != nil {
			return err
		}
		p.making.cost.Store(int64(in.guest.setUp))
		p.free = append(p.free, in)
	}
	if spare {
		in, err := p.make(ctx)
		if err != nil {
			return err
		}
		p.spare <- in
	}
	p.wantSpare = spare
	return nil
}

// take waits until it is the caller's turn to have an instance, until ctx ends. One that is there goes before one that is to be
// made. The error is a *notMade when none is left and none can be made.
func (p *pool) take(ctx context.Context, caller uint64) (*instance, error) {
	in, err := p.wait(ctx, caller)
	for in == nil && err == nil {
		if in, err = p.spareOrBuilt(caller, false); err != nil {
			in, err = p.exchange(ctx, caller, err)
		}
	}
	return in, err
}

// wait returns an instance, or nil for a place where one is to be made.
func (p *pool) wait(ctx context.Context, caller uint64) (*instance, error) {
	p.mu.Lock()
	if in := p.idle(); in != nil {
		p.mu.Unlock()
		return in, nil
	}
	if p.empty > 0 {
		p.empty--
		p.mu.Unlock()
		return nil, nil
	}
	return p.line(ctx, caller)
}

// exchange gives a place back for which no instance can be made, and waits for one that is in use; when there is none either,
// it returns why.
func (p *pool) exchange(ctx context.Context, caller uint64, why error) (*instance, error) {
	p.mu.Lock()
	if in := p.idle(); in != nil {
		p.empty++
		p.mu.Unlock()
		return in, nil
	}
	if p.empty+1 == p.size {
		p.mu.Unlock()
		p.give(nil)
		return nil, why
	}
	p.empty++
	return p.line(ctx, caller)
}

// idle takes the instance that was used last, whose memory is in the processor's caches; nil when there is none. The caller
// holds mu.
func (p *pool) idle() (in *instance) {
	if last := len(p.free) - 1; last >= 0 {
		in, p.free = p.free[last], p.free[:last]
	}
	return in
}

// line waits in the queue for what another one gives back: nil is its place. The caller holds mu, and line lets it go.
func (p *pool) line(ctx context.Context, caller uint64) (*instance, error) {
	w := p.queue.join(caller)
	p.mu.Unlock()
	select {
	case in := <-w.got:
		return in, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	left := p.queue.leave(w)
	p.mu.Unlock()
	if !left { // it was given one meanwhile
		p.give(<-w.got)
	}
	return nil, errors.New("all instances were busy until the deadline")
}

// give brings back what take or replace returned, nil when that was an error.
func (p *pool) give(in *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.queue.next(); w != nil {
		w.got <- in
		return
	}
	if in == nil {
		p.empty++
		return
	}
	p.free = append(p.free, in)
}

// spend notes the time of the instance's last call, and reports whether another caller is to have an instance before this one
// has its next call.
func (p *pool) spend(caller uint64, in *instance) bool {
	if p.queue.length.Load() == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.spend(caller, time.Since(in.guest.began))
}

// replace closes an instance that trapped and returns a fresh one.
func (p *pool) replace(in *instance, caller uint64) (*instance, error) {
	in.close()
	return p.spareOrBuilt(caller, true)
}

// renew returns a fresh instance in place of one that has become large, or that one when none can be made.
func (p *pool) renew(in *instance, caller uint64) (_ *instance, done bool) {
	fresh, err := p.spareOrBuilt(caller, false)
	if err != nil {
		return in, false
	}
	in.close()
	return fresh, true
}

// refill makes the next spare on the side; close waits for it.
func (p *pool) refill() {
	if !p.wantSpare || len(p.spare) > 0 || !p.refilling.CompareAndSwap(false, true) {
		return
	}
	p.refills.Go(func() {
		defer p.refilling.Store(false)
		if in, err := p.build(0, false); err == nil { // else the next replacement sees the error
			p.spare <- in
		}
	})
}

// close frees all instances; none may be in use.
func (p *pool) close() {
	p.refills.Wait()
	for _, in := range p.free {
		in.close()
	}
	p.free = nil
	for len(p.spare) > 0 {
		(<-p.spare).close()
	}
}
