package plugins

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// pool keeps a fixed number of instances of one step ready, and perhaps one more to replace one that trapped.
type pool struct {
	make      func(context.Context) (*instance, error)
	free      chan *instance // nil stands for one that is to be made when it is needed
	spare     chan *instance
	wantSpare bool
	refilling atomic.Bool
	refills   sync.WaitGroup
}

func newPool(size int, make_ func(context.Context) (*instance, error)) *pool {
	return &pool{make: make_, free: make(chan *instance, size), spare: make(chan *instance, 1)}
}

// fill makes the instances.
func (p *pool) fill(ctx context.Context, spare bool) error {
	for range cap(p.free) {
		in, err := p.make(ctx)
		if err != nil {
			return err
		}
		p.free <- in
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

// take waits for a free instance until ctx ends.
func (p *pool) take(ctx context.Context) (*instance, error) {
	var in *instance
	select {
	case in = <-p.free:
	default:
		select {
		case in = <-p.free:
		case <-ctx.Done():
			return nil, errors.New("all instances were busy until the deadline")
		}
	}
	if in != nil {
		return in, nil
	}
	in, err := p.make(ctx)
	if err != nil {
		p.free <- nil
	}
	return in, err
}

// give brings back what take or replace returned, nil when that was an error.
func (p *pool) give(in *instance) { p.free <- in }

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
	for _, ready := range []chan *instance{p.free, p.spare} {
		for len(ready) > 0 {
			if in := <-ready; in != nil {
				in.close()
			}
		}
	}
}
