// Package arrange brings runs that are read from several JetStream streams into the order in which their lanes follow each other.
package arrange

import (
	"time"

	"github.com/headgate-io/headgate/forward/jetstream"
	"github.com/headgate-io/headgate/internal/compress"
	"github.com/headgate-io/headgate/sdk/wire"
)

// Arranger brings the runs of a stream whose partitions lie in several JetStream streams into an order: a run comes when
// those that its frames name as predecessors have come. In one JetStream stream they lie in that order.
type Arranger struct {
	visit   func(*jetstream.Message) error
	lenient bool // a lane of which nothing has come is taken for read: reading does not begin at the start
	last    map[laneOf]uint64
	queues  map[laneOf][]heldRun
	waiting int
	held    int // bytes of the runs that wait
}

type laneOf struct {
	partition int32
	gateway   string
}

// heldRun is a run that waits, or is behind one that does.
type heldRun struct {
	message *jetstream.Message
	after   []wire.Predecessor
	since   time.Time
}

// A run waits for others for so long, as what it waits for may have been purged, and no longer than so much waits.
const (
	arrangeFor   = 2 * time.Second
	arrangeBytes = 64 << 20
)

// New makes one. A lenient one takes a lane of which nothing has come for read, since reading does not begin at the start.
func New(lenient bool, visit func(*jetstream.Message) error) *Arranger {
	return &Arranger{visit: visit, lenient: lenient, last: map[laneOf]uint64{}, queues: map[laneOf][]heldRun{}}
}

// Add takes the next run of a lane, or a marker, which only says how far the lane is.
func (a *Arranger) Add(m *jetstream.Message, now time.Time) error {
	lane := laneOf{m.Partition, m.Gateway}
	if m.Marker {
		if len(a.queues[lane]) == 0 {
			a.last[lane] = max(a.last[lane], m.Last)
		}
		return a.release(now)
	}
	after := predecessors(m)
	if len(a.queues[lane]) > 0 || a.missing(after) {
		a.queues[lane] = append(a.queues[lane], heldRun{m, after, now})
		a.waiting, a.held = a.waiting+1, a.held+len(m.Payload)
		return a.release(now)
	}
	if err := a.pass(lane, m); err != nil {
		return err
	}
	return a.release(now)
}

func (a *Arranger) pass(lane laneOf, m *jetstream.Message) error {
	a.last[lane] = max(a.last[lane], m.Last)
	return a.visit(m)
}

func (a *Arranger) missing(after []wire.Predecessor) bool {
	for _, p := range after {
		last, seen := a.last[laneOf{int32(p.Partition), p.Gateway}]
		if last < p.Number && (seen || !a.lenient) {
			return true
		}
	}
	return false
}

// release passes on what waits for nothing any more, or has waited for too long.
func (a *Arranger) release(now time.Time) error {
	for again := a.waiting > 0; again; {
		again = false
		for lane, queue := range a.queues {
			if len(queue) == 0 || a.missing(queue[0].after) && a.held <= arrangeBytes && now.Sub(queue[0].since) < arrangeFor {
				continue
			}
			again = true
			a.queues[lane] = queue[1:]
			a.waiting, a.held = a.waiting-1, a.held-len(queue[0].message.Payload)
			if err := a.pass(lane, queue[0].message); err != nil {
				return err
			}
		}
	}
	return nil
}

// Rest passes on what waits in vain.
func (a *Arranger) Rest() error { return a.release(time.Now().Add(24 * time.Hour)) }

// predecessors are those of all frames of a run; a run that does not decode has none here, and is named by who shows it.
func predecessors(m *jetstream.Message) (all []wire.Predecessor) {
	codec, err := compress.ByEncoding(m.ContentEncoding)
	if err != nil {
		return nil
	}
	var meta wire.Meta
	for run := m.Payload; len(run) > 0; {
		block, _, rest, err := wire.SplitFrame(run, codec.Name())
		if err != nil || block == nil || wire.ParseMeta(block, &meta) != nil {
			return all
		}
		all = append(all, meta.After...)
		run = rest
	}
	return all
}
