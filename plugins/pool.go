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

	mu    sync.Mutex  // guards the rest
	free  []*instance // nil stands for one that is to be made when it is needed
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

// take waits until it is the caller's turn to have an instance, until ctx ends.
func (p *pool) take(ctx context.Context, caller uint64) (*instance, error) {
	in, err := p.wait(ctx, caller)
	if in != nil || err != nil {
		return in, err
	}
	if in, err = p.make(ctx); err != nil {
		p.give(nil)
	}
	return in, err
}

func (p *pool) wait(ctx context.Context, caller uint64) (*instance, error) {
	p.mu.Lock()
	if last := len(p.free) - 1; last >= 0 {
		in := p.free[last] // the one used last: its memory is in the processor's caches
		p.free = p.free[:last]
		p.mu.Unlock()
		return in, nil
	}
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
func (p *pool) replace(in *instance) (*instance, error) {
	in.close()
	defer p.refill()
	select {
	case in = <-p.spare:
		return in, nil
	default:
		return p.make(context.Background())
	}
}

// refill makes the next spare on the side; close waits for it.
func (p *pool) refill() {
	if !p.wantSpare || len(p.spare) > 0 || !p.refilling.CompareAndSwap(false, true) {
		return
	}
	p.refills.Go(func() {
		defer p.refilling.Store(false)
		if in, err := p.make(context.Background()); err == nil { // else the next replacement sees the error
			p.spare <- in
		}
	})
}

// close frees all instances; none may be in use.
func (p *pool) close() {
	p.refills.Wait()
	for _, in := range p.free {
		if in != nil {
			in.close()
		}
	}
	p.free = nil
	for len(p.spare) > 0 {
		(<-p.spare).close()
	}
}
