package consume

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/headgate-io/headgate/internal/compress"
	"github.com/headgate-io/headgate/sdk/wire"
)

// Lane names an ordered row of frames: what one gateway sends to one partition of a stream.
type Lane struct {
	Stream    string
	Partition uint32
	Gateway   string
}

// String is a lane as it is written in messages.
func (l Lane) String() string { return fmt.Sprintf("%s/%d/%s", l.Stream, l.Partition, l.Gateway) }

// ErrBlocked is returned by Order.Add when what waits for other lanes would need more memory than allowed: the caller reads
// on in those lanes (see Order.Blocked) and adds the same run again.
var ErrBlocked = errors.New("more waits for other lanes than may be held")

// Order brings the frames of several lanes into an order that keeps the events of each key, and where keys are split those
// of each key and source, in theirs, also when they went to another partition. Each lane is added in its order; how the
// lanes are mixed does not matter. An event that has been there is dropped: what a gateway sends twice comes once. It is
// not safe for concurrent use.
//
// A frame says what has to be read before it. It waits until that was added, and all of its lane behind it too. A
// reader that starts in the middle says with Start what it does not read.
type Order struct {
	yield func(Event) error
	now   func() time.Time
	limit int
	lanes map[Lane]*laneAt
	held  int // bytes that wait
	stats OrderStats
}

// OrderStats says what an Order has done.
type OrderStats struct {
	Events     uint64        // passed on
	Duplicates uint64        // dropped, since they had been there
	Waited     uint64        // frames that had to wait
	Waiting    int           // frames that wait now
	Longest    time.Duration // that one has waited
}

// laneAt is how far a lane is.
type laneAt struct {
	last  uint64 // number of the last event that was passed on
	queue []waiting
}

// waiting is a frame that waits, or has one before it that does.
type waiting struct {
	frame   []byte
	codec   *compress.Codec
	framing wire.Framing
	after   []wire.Predecessor
	last    uint64 // number of its last event
	since   time.Time
}

// OrderConfig says how an Order is made. The zero value works.
type OrderConfig struct {
	Limit int              // most bytes that wait; 0: 64 MiB
	Now   func() time.Time // nil: time.Now
}

// NewOrder returns an Order that passes events to yield; what yield is given is lent, as by Decode.
func NewOrder(cfg OrderConfig, yield func(Event) error) *Order {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Order{yield: yield, now: cfg.Now, limit: cmp.Or(cfg.Limit, 64<<20), lanes: map[Lane]*laneAt{}}
}

// Start says that a lane is read from behind the event of that number on: who waits for what comes before does not.
func (o *Order) Start(l Lane, number uint64) {
	at := o.at(l)
	at.last = max(at.last, number)
}

// At returns the number of a lane's last event that was passed on, 0 for none: where to go on after a restart.
func (o *Order) At(l Lane) uint64 { return o.at(l).last }

// Stats says what was done until now.
func (o *Order) Stats() OrderStats { return o.stats }

func (o *Order) at(l Lane) *laneAt {
	at := o.lanes[l]
	if at == nil {
		at = &laneAt{}
		o.lanes[l] = at
	}
	return at
}

// Add takes a run as Decode does, with the headers that came with it, and passes on all that can be. After ErrBlocked
// the run was not taken, or a first part of it: added again, that part counts as known. Other errors are those of Decode,
// or yield's own. Runs without metadata (the codecs gzip and none carry none) are passed on as they come.
func (o *Order) Add(run []byte, contentEncoding, contentType string) error {
	framing, ok := wire.FramingOf(contentType)
	if !ok {
		return Decode(run, contentEncoding, contentType, o.yield) // which says what is wrong
	}
	codec, err := compress.ByEncoding(contentEncoding)
	if err != nil {
		return fmt.Errorf("order: %w", err)
	}
	for len(run) > 0 {
		rest, err := o.addFrame(run, codec, framing)
		if err != nil {
			return err
		}
		run = rest
	}
	return o.release()
}

// addFrame takes the first frame off a run.
func (o *Order) addFrame(run []byte, codec *compress.Codec, framing wire.Framing) (rest []byte, err error) {
	d := decoders.Get().(*decoder)
	defer d.release()
	if rest, err = d.load(run, codec, framing); err != nil {
		return nil, fmt.Errorf("order: %w", err)
	}
	if !d.hasMeta {
		return rest, d.each(o.yield)
	}
	at, after := o.at(laneOf(&d.meta)), d.meta.After
	if len(at.queue) == 0 && !slices.ContainsFunc(after, func(p wire.Predecessor) bool { return o.missing(d.meta.Stream, p) }) {
		return rest, o.pass(d, at)
	}
	last := d.meta.First + uint64(len(d.events)) - 1
	if n := len(at.queue); n > 0 && last <= at.queue[n-1].last { // added again, and it waits still
		o.stats.Duplicates += uint64(len(d.events))
		return rest, nil
	}
	size := len(run) - len(rest)
	if o.held+size > o.limit {
		return nil, ErrBlocked
	}
	o.held += size
	o.stats.Waited, o.stats.Waiting = o.stats.Waited+1, o.stats.Waiting+1
	at.queue = append(at.queue, waiting{slices.Clone(run[:size]), codec, framing, slices.Clone(after), last, o.now()})
	return rest, nil
}

func laneOf(m *wire.Meta) Lane { return Lane{m.Stream, m.Partition, m.Gateway} }

// missing tells that a predecessor was not passed on yet.
func (o *Order) missing(stream string, p wire.Predecessor) bool {
	at := o.lanes[Lane{stream, p.Partition, p.Gateway}]
	return at == nil || at.last < p.Number
}

// pass passes the events of a frame on that have not been there.
func (o *Order) pass(d *decoder, at *laneAt) error {
	return d.each(func(e Event) error {
		if e.Number <= at.last {
			o.stats.Duplicates++
			return nil
		}
		if err := o.yield(e); err != nil {
			return err
		}
		at.last = e.Number
		o.stats.Events++
		return nil
	})
}

// release passes on what waits for nothing any more.
func (o *Order) release() error {
	for again := o.stats.Waiting > 0; again; {
		again = false
		for lane, at := range o.lanes {
			for len(at.queue) > 0 && o.blocker(lane, at) == nil {
				if err := o.next(at); err != nil {
					return err
				}
				again = true
			}
		}
	}
	return nil
}

// blocker is what the first frame of a lane's queue waits for, nil for nothing.
func (o *Order) blocker(lane Lane, at *laneAt) *wire.Predecessor {
	for i := range at.queue[0].after {
		if p := &at.queue[0].after[i]; o.missing(lane.Stream, *p) {
			return p
		}
	}
	return nil
}

// next passes on the first frame of a lane's queue.
func (o *Order) next(at *laneAt) error {
	w := &at.queue[0]
	d := decoders.Get().(*decoder)
	defer d.release()
	if _, err := d.load(w.frame, w.codec, w.framing); err != nil {
		return fmt.Errorf("order: %w", err)
	}
	if err := o.pass(d, at); err != nil {
		return err
	}
	o.stats.Longest = max(o.stats.Longest, o.now().Sub(w.since))
	o.stats.Waiting--
	o.held -= len(w.frame)
	at.queue = at.queue[1:]
	return nil
}

// Blocked is a lane that waits.
type Blocked struct {
	Lane   Lane
	For    Lane          // which has to be read
	Number uint64        // up to this event
	Since  time.Duration // how long the first frame has waited
	Frames int
}

// Blocked returns the lanes that wait, the longest first.
func (o *Order) Blocked() (all []Blocked) {
	for lane, at := range o.lanes {
		if len(at.queue) == 0 {
			continue
		}
		b := Blocked{Lane: lane, Since: o.now().Sub(at.queue[0].since), Frames: len(at.queue)}
		if p := o.blocker(lane, at); p != nil {
			b.For, b.Number = Lane{lane.Stream, p.Partition, p.Gateway}, p.Number
		}
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b Blocked) int {
		return cmp.Or(cmp.Compare(b.Since, a.Since), cmp.Compare(a.Lane.Partition, b.Lane.Partition))
	})
	return all
}

// GiveUp passes on what waits although what it waits for was not added: it will never be, since it was removed from the
// backend. Lanes with lower partitions come first.
func (o *Order) GiveUp() error {
	for o.stats.Waiting > 0 {
		all := o.Blocked()
		slices.SortFunc(all, func(a, b Blocked) int { return cmp.Compare(a.Lane.Partition, b.Lane.Partition) })
		if err := o.next(o.lanes[all[0].Lane]); err != nil {
			return err
		}
		if err := o.release(); err != nil {
			return err
		}
	}
	return nil
}
