package plugins

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
)

// Rules are what an event must keep to whose bytes a plugin replaced: those of events on arrival.
type Rules struct {
	MaxEvent int                // bytes; 0: 1 MiB
	MaxDepth int                // nesting of JSON; 0: 64
	PassUTF8 bool               // text need not be UTF-8
	Watch    []jsonscan.Pointer // the stream's, for event.Fields of the new bytes
}

const (
	defaultEvent = 1 << 20
	defaultDepth = 64
)

// Chain is an ordered set of plugins with their instances, ready to process batches of one stream. To swap
// chains make the next one, exchange an atomic pointer, and retire the old one; its last user frees it.
type Chain struct {
	places  []*place
	digest  string       // with every plugin in the version that is in force
	digests *[100]string // by share of the producer, see share; nil: there is no canary
	refs    references

	troubled atomic.Bool // a version was suspended: digests are not what a batch gets
}

// NewChain makes the instances and hands each its configuration. A plugin that refuses gives
// an *event.Problem.
func (h *Host) NewChain(ctx context.Context, steps []Step, rules Rules) (*Chain, error) {
	if rules.MaxEvent == 0 {
		rules.MaxEvent = defaultEvent
	}
	if rules.MaxDepth == 0 {
		rules.MaxDepth = defaultDepth
	}
	c := &Chain{}
	c.refs.init(c.free)
	for _, cfg := range steps {
		if err := c.add(ctx, h, cfg, rules); err != nil {
			c.free()
			return nil, err
		}
	}
	for _, p := range c.places {
		if err := p.watch(ctx, h, rules); err != nil {
			c.free()
			return nil, err
		}
	}
	c.name()
	return c, nil
}

// add makes the instances of one more version.
func (c *Chain) add(ctx context.Context, h *Host, cfg Step, rules Rules) error {
	s, err := h.newStep(ctx, cfg, rules)
	if err != nil {
		return err
	}
	if cfg.Stage == Active {
		c.places = append(c.places, &place{active: s})
		return nil
	}
	at := slices.IndexFunc(c.places, func(p *place) bool { return p.plugin() == cfg.Name && p.tried == nil })
	if at < 0 {
		c.places, at = append(c.places, &place{}), len(c.places)
	}
	c.places[at].tried = &tried{step: s}
	return nil
}

// Digest names the versions in force, in order, with commas between them; empty for a chain without any.
func (c *Chain) Digest() string { return c.digest }

// Process runs each plugin over the events that the ones before kept, and sets their keys, verdicts and bytes. The
// last plugin that gave an event a key wins. The error is an *event.Problem, overloaded when no instance became
// free before ctx ended; the batch must then be given up as a whole. The caller holds a reference.
func (c *Chain) Process(ctx context.Context, b *event.Batch) error {
	n := everybody
	b.Chain = c.digest
	if c.digests != nil {
		n = share(b.Producer)
		b.Chain = c.digests[n]
		if c.troubled.Load() { // until the next chain is there
			b.Chain = c.digestOf(n)
		}
	}
	for _, p := range c.places {
		if err := p.process(ctx, b, n); err != nil {
			return err
		}
	}
	return nil
}

// Acquire adds a user; false means that the chain is being freed and another one is in force.
func (c *Chain) Acquire() bool { return c.refs.acquire() }

// Release ends what Acquire began.
func (c *Chain) Release() error { return c.refs.release() }

// Retire gives the maker's own use up. It may be called twice.
func (c *Chain) Retire() error { return c.refs.retire() }

func (c *Chain) free() (err error) {
	for _, p := range slices.Backward(c.places) {
		err = errors.Join(err, p.close())
	}
	return err
}
