package window

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/headgate-io/headgate/event"
)

// Standing is how an id stands when an event with it comes in.
type Standing uint8

// An event whose id is Fresh is claimed and goes on; one whose id is Safe is a duplicate; one whose id is Pending
// waits for the claim that has it.
const (
	Fresh Standing = iota
	Safe
	Pending
)

// Ref is an event of a batch, its identity, and how that stands.
type Ref struct {
	ID       ID
	Place    int32 // of the event in its batch
	Standing Standing

	First int32  // when it is Pending: the place of the first event with the id, in the batch
	Of    *Claim // of which this is the claim
}

// Fate is what has become of a claimed event that is not safe where it was to go.
type Fate struct {
	Place   int32
	Verdict event.Verdict // Rejected or DeadLettered
	Code    event.Code
	Detail  string
}

// Claim is the ids of one batch that nobody had before. They are pending until Settle, which must come.
type Claim struct {
	set    *Set
	number uint32
	ids    []claimed
	share  *share[chain] // of who sent the batch
	greedy bool          // others may have to make room for it

	// Guarded by set.mu.
	done    bool
	taken   bool // the events are in memory of which they can't be refused for want of room any more
	changed chan struct{}
	then    []func()
	fates   []Fate // in order of their places
	problem *event.Problem
}

// claimed is a claimed id: its entry, and the place of the event in the batch.
type claimed struct {
	entry uint32
	place int32
}

var idLists = sync.Pool{New: func() any { return new([]claimed) }}

// part is how many ids are looked up or settled at a time: others wait for some 50 microseconds at most.
const part = 512

// Claim says how each of refs stands, and claims those that are Fresh for their owner. A false answer means that there is
// no room, as too many ids are pending; then nothing is claimed.
func (s *Set) Claim(refs []Ref, owner Owner, now time.Time) (*Claim, bool) {
	list := idLists.Get().(*[]claimed)
	c := &Claim{set: s, ids: (*list)[:0]}
	s.enter(c, owner)
	for rest := range slices.Chunk(refs, part) {
		if !s.claim(c, rest, now) {
			c.Settle(nil, event.Problemf(event.Overloaded, "too many events with ids are on their way; send again later"), now)
			return nil, false
		}
	}
	return c, true
}

// enter gives the claim a number and a share. An owner of whom half of all ids are pending takes no more from others:
// its events do not get on, and what is safe of others must not be forgotten for that. One claim may be larger.
func (s *Set) enter(c *Claim, owner Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.share = s.shares.use(owner)
	c.greedy = 2*c.share.held.pending <= s.limit
	if n := len(s.numbers); n > 0 {
		c.number, s.numbers = s.numbers[n-1], s.numbers[:n-1]
		s.claims[c.number] = c
		return
	}
	c.number = uint32(len(s.claims))
	s.claims = append(s.claims, c)
}

func (s *Set) claim(c *Claim, refs []Ref, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	s.ahead(refs)
	for i := range refs {
		r := &refs[i]
		if n, found := s.find(r.ID); found {
			r.Standing = Safe
			if e := s.entry(n); e.at&pending != 0 {
				r.Standing, r.Of = Pending, s.claims[e.at&^pending]
				r.First = r.Of.ids[e.next].place
			}
			continue
		}
		n, ok := s.add(r.ID, c)
		if !ok {
			return false
		}
		e := s.entry(n)
		e.at, e.next = c.number|pending, uint32(len(c.ids))
		s.pending++
		c.share.held.pending++
		c.ids = append(c.ids, claimed{n, r.Place})
		r.Standing = Fresh
	}
	return true
}

// Refuse ends the claim of the events with a fate, in order of their places, before any other is on its way.
func (c *Claim) Refuse(fates []Fate) {
	s := c.set
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := fates
	for i := range c.ids {
		id := &c.ids[i]
		for len(rest) > 0 && rest[0].Place < id.place {
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0].Place == id.place {
			s.remove(id.entry)
			id.entry = gone
			s.pending--
			c.share.held.pending--
		}
	}
	c.fates = fates
}

// gone is in the place of an entry whose claim has ended.
const gone = 1<<32 - 1

// Taken says that the events are on their way and can only be refused by the backend: what was asked for in bounded
// memory is reached.
func (c *Claim) Taken() {
	c.set.mu.Lock()
	defer c.set.mu.Unlock()
	c.taken = true
	c.wake()
}

// Settle ends the claim. The ids of the events with a fate, in order of their places, are forgotten: a repetition is
// tried anew. The fates given to Refuse are among them. The others are safe, unless whole says what has become of the batch: then none is.
func (c *Claim) Settle(fates []Fate, whole *event.Problem, now time.Time) {
	s := c.set
	rest := fates
	for ids := range slices.Chunk(c.ids, part) {
		rest = c.settle(ids, rest, whole != nil, second(s.made, now))
	}
	for _, f := range c.end(fates, whole) {
		f()
	}
}

func (c *Claim) settle(ids []claimed, fates []Fate, failed bool, now uint32) []Fate {
	s := c.set
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record(c.share.owner, now)
	for _, id := range ids {
		for len(fates) > 0 && fates[0].Place < id.place {
			fates = fates[1:]
		}
		if id.entry == gone {
			continue
		}
		s.pending--
		c.share.held.pending--
		if failed || len(fates) > 0 && fates[0].Place == id.place || len(s.doomed) > 0 && s.doomed[s.entry(id.entry).id] {
			delete(s.doomed, s.entry(id.entry).id)
			s.remove(id.entry)
		} else {
			s.finish(id.entry, now, c.share)
			s.note(id.entry, 0)
		}
	}
	s.noted()
	s.shares.sized(c.share)
	return fates
}

// end tells who waits.
func (c *Claim) end(fates []Fate, whole *event.Problem) (then []func()) {
	s := c.set
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims[c.number] = nil
	s.numbers = append(s.numbers, c.number)
	list := c.ids
	c.ids = nil
	idLists.Put(&list)
	s.shares.done(c.share)
	c.fates, c.problem, c.done = fates, whole, true
	c.wake()
	then, c.then = c.then, nil
	return then
}

// wake wakes who waits; set.mu is held.
func (c *Claim) wake() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// Then has f called when the claim is settled: at once, or by who settles it, whom f must not keep.
func (c *Claim) Then(f func()) {
	c.set.mu.Lock()
	waits := !c.done
	if waits {
		c.then = append(c.then, f)
	}
	c.set.mu.Unlock()
	if !waits {
		f()
	}
}

// Wait returns when the events of the claim have come as far as level: accepted means that they are taken, all else
// that the claim is settled. The error is that of ctx, which ended first.
func (c *Claim) Wait(ctx context.Context, level event.Level) error {
	for {
		changed := c.progress(level)
		if changed == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// progress returns nil when the claim has come as far as level, else what is closed when it comes further.
func (c *Claim) progress(level event.Level) chan struct{} {
	c.set.mu.Lock()
	defer c.set.mu.Unlock()
	if c.done || c.taken && level <= event.Accepted {
		return nil
	}
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.changed
}

// Fate returns what has become of the event at a place: nothing when it is safe, or has come as far as was waited for.
func (c *Claim) Fate(place int32) (f Fate, whole *event.Problem) {
	c.set.mu.Lock()
	defer c.set.mu.Unlock()
	if c.problem != nil {
		return Fate{}, c.problem
	}
	if i, found := slices.BinarySearchFunc(c.fates, place, func(f Fate, p int32) int { return int(f.Place - p) }); found {
		return c.fates[i], nil
	}
	return Fate{}, nil
}
