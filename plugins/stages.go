package plugins

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/headgate-io/headgate/event"
)

// Stage is how far a version has come in a chain.
type Stage uint8

// Active is the zero value.
const (
	Active Stage = iota // processes the events
	Shadow              // processes copies of them, and what it makes of these is compared
	Canary              // processes those of some producers, and the active version copies of these

	reference // the active version, when it processes copies
)

// stageNames are the words for stages in metrics; read only.
var stageNames = [...]string{"active", "shadow", "canary", "reference"}

// String returns the word for it.
func (s Stage) String() string { return stageNames[s] }

// place is one plugin's place in a chain.
type place struct {
	active *step  // the version in force; nil: there is none yet
	tried  *tried // the one that is tried; nil: none
}

// tried is a version that is tried beside or in place of the active one.
type tried struct {
	step  *step
	watch *beside // runs the other one of the two over copies
}

func (p *place) plugin() string {
	if p.active != nil {
		return p.active.Name
	}
	return p.tried.step.Name
}

// everybody is the share that no canary has.
const everybody = 100

// share is which of 100 shares a producer is in: a canary of n % has the first n. It is FNV-1a, 64 bits, of which the upper
// half depends on all bytes.
func share(producer []byte) int {
	h := uint64(14695981039346656037)
	for _, c := range producer {
		h = (h ^ uint64(c)) * 1099511628211
	}
	h ^= h >> 32
	return int(h % 100)
}

// chosen is the version that processes a producer's events, nil for none.
func (p *place) chosen(n int) *step {
	if t := p.tried; t != nil && t.step.Stage == Canary && n < t.step.Percent && !t.step.health.suspended.Load() {
		return t.step
	}
	return p.active
}

// process runs the version that is chosen over b, and has what it makes of some events compared.
func (p *place) process(ctx context.Context, b *event.Batch, n int) error {
	s := p.chosen(n)
	var sample *sample
	if t := p.tried; t != nil && !b.Trial && (s == t.step || t.step.Stage == Shadow) {
		sample = t.watch.take(b)
	}
	if s != nil {
		if err := s.process(ctx, b); err != nil {
			sample.drop()
			return err
		}
		if b.Trial {
			b.Trace("plugin " + s.Name)
		}
	}
	sample.send(b)
	return nil
}

// watch starts the comparison of the version that is tried.
func (p *place) watch(ctx context.Context, h *Host, rules Rules) error {
	t := p.tried
	if t == nil {
		return nil
	}
	other := t.step // of a shadow
	if t.step.Stage == Canary {
		if other = p.active; other != nil {
			cfg := other.Step
			cfg.Stage = reference
			var err error
			if other, err = h.newStep(ctx, cfg, rules); err != nil {
				return err
			}
		}
	}
	t.watch = newBeside(other, t.step.bill)
	return nil
}

// close frees the instances; none may be in use.
func (p *place) close() (err error) {
	if t := p.tried; t != nil {
		if t.watch != nil {
			t.watch.close()
			if s := t.watch.step; s != nil && s != t.step {
				err = s.close()
			}
		}
		err = errors.Join(err, t.step.close())
	}
	if p.active != nil {
		err = errors.Join(err, p.active.close())
	}
	return err
}

// name makes the digests.
func (c *Chain) name() {
	c.digest = c.digestOf(everybody)
	if !slices.ContainsFunc(c.places, func(p *place) bool { return p.tried != nil && p.tried.step.Stage == Canary }) {
		return
	}
	c.digests = new([100]string)
	for n := range c.digests {
		c.digests[n] = c.digestOf(n)
		if n > 0 && c.digests[n] == c.digests[n-1] {
			c.digests[n] = c.digests[n-1] // one string for all
		}
	}
}

func (c *Chain) digestOf(n int) string {
	var all []string
	for _, p := range c.places {
		if s := p.chosen(n); s != nil {
			all = append(all, s.Module.Digest)
		}
	}
	return strings.Join(all, ",")
}

// OnSuspend has a version told to f once it is suspended, by a goroutine that processes a batch and waits for f. It is called
// before c is used.
func (c *Chain) OnSuspend(f func(plugin, digest string, stage Stage, reason string)) {
	for _, p := range c.places {
		for _, s := range p.versions() {
			s.tripped = func(reason string) {
				c.troubled.Store(true)
				f(s.Name, s.Module.Digest, s.Stage, reason)
			}
		}
	}
}

// versions are those that batches depend on.
func (p *place) versions() (all []*step) {
	if p.active != nil {
		all = append(all, p.active)
	}
	if p.tried != nil {
		all = append(all, p.tried.step)
	}
	return all
}
