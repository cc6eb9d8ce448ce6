package plugins

import (
	"context"
	"errors"
	"slices"
	"strings"

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
	steps  []*step
	digest string
	refs   references
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
	var digests []string
	for _, cfg := range steps {
		s, err := h.newStep(ctx, cfg, rules)
		if err != nil {
			c.free()
			return nil, err
		}
		c.steps = append(c.steps, s)
		digests = append(digests, cfg.Module.Digest)
	}
	c.digest = strings.Join(digests, ",")
	return c, nil
}

// Digest names the versions in the chain, in order, with commas between them; empty for a chain without plugins.
func (c *Chain) Digest() string { return c.digest }

// Process runs each plugin over the events that the ones before kept, and sets their keys, verdicts and bytes. The
// last plugin that gave an event a key wins. The error is an *event.Problem, overloaded when no instance became
// free before ctx ended; the batch must then be given up as a whole. The caller holds a reference.
func (c *Chain) Process(ctx context.Context, b *event.Batch) error {
	b.Chain = c.digest
	for _, s := range c.steps {
		if err := s.process(ctx, b); err != nil {
			return err
		}
		if b.Trial {
			b.Trace("plugin " + s.Name)
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
	for _, s := range slices.Backward(c.steps) {
		err = errors.Join(err, s.close())
	}
	return err
}
