package forward

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/wire"
)

// lane is the ordered queue of one partition. Requests put events into its open frame; its sealer and its
// sender, one goroutine each, take frames from there to the backend.
type lane struct {
	f         *Forwarder
	partition int32

	sealer  chan struct{}           // wakes the sealer: capacity 1
	timer   *time.Timer             // wakes the sealer when the open frame is due
	sender  chan struct{}           // wakes the sender: capacity 1
	calling chan struct{}           // holds one while the backend is asked where the lane ended, or seals it: capacity 1
	trouble atomic.Pointer[trouble] // nil unless the backend's last answer was a failure

	next      uint64 // number of the next event to be sealed, 0 before Resume; the sealer's
	highest   uint64 // number of the last event that the spool knew at the start
	confirmed uint64 // number up to which an earlier process was done, also in the middle of a frame
	boundary  uint64 // where the run ended that an earlier process sent last: it is sent again under the same id
	numbers   numbers
	patience  patience
	missed    uint64    // number up to which what the backend lost was counted; the sender's
	sentAt    time.Time // of the last run; the sender's

	mu         sync.Mutex // guards the rest
	minVersion uint64     // events routed by an older table are refused
	closing    bool       // nothing comes in any more
	open       *frame     // nil when it would be empty
	due        time.Time  // when the open frame is sealed at the latest
	joined     bool       // the lane is part of the next round
	size       int        // bytes of the last frames, a guess at the next
	// queue has the closed frames in order: first those of the run in flight, then sealed ones, then ones that
	// wait for the sealer.
	queue    []*frame
	sealed   int // frames of the queue that are sealed, those in flight among them
	inflight int // frames of the run in flight
	spilled  spilled
	writing  int           // frames that the spool has not written and somebody waits for
	unsafe   int           // frames that the spool has not written
	quit     chan struct{} // closed when a closed lane need not wait for its backend
	left     bool          // quit is closed
	resumed  bool          // the backend has said where the lane ends
	doubtful bool          // the backend may have less than it confirmed
	numbered chan struct{} // closed when the sender may send what an earlier process left
	counts   laneCounts
	laneSeal *laneSeal          // nil for none
	after    []wire.Predecessor // what new frames name as their predecessors: no frame that is stored does yet
	told     int                // how many predecessors there have been in all; after has the last ones
	stored   uint64             // number of the last event that this process knows to be stored, 0 for none
	ack      time.Duration      // how long a run takes, smoothed
}

func newLane(f *Forwarder, partition int32) *lane {
	return &lane{
		f: f, partition: partition, sealer: make(chan struct{}, 1), sender: make(chan struct{}, 1), calling: make(chan struct{}, 1), timer: time.NewTimer(math.MaxInt64),
		quit: make(chan struct{}), numbered: make(chan struct{}), numbers: numbers{met: make(chan struct{})},
	}
}

// wake makes the goroutine behind ch look again; it may be busy, and then looks when it is done.
func wake(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// put copies the events at which into the lane, or reports false when they are routed by a table too old.
func (l *lane) put(in *intake, which []int32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if in.batch.TableVersion < l.minVersion {
		return false
	}
	l.counts.accepted += uint64(len(which))
	l.counts.open += len(which)
	queued, due, request := len(l.queue), l.due, in.weight
	for len(which) > 0 {
		if l.open == nil {
			l.begin(in, &in.batch.Events[which[0]])
		}
		n, held := l.open.fill(in, which, &l.f.cfg)
		if n > 0 {
			held += request
			l.open.held += request
			request = 0
		}
		l.counts.bytes += held
		which = which[n:]
		if len(which) > 0 || l.open.full(&l.f.cfg) {
			l.cut()
		}
	}
	if l.open != nil && in.due.Before(l.due) {
		l.due = in.due
	}
	if l.f.round != nil && !l.joined && l.open != nil && l.open.waited && !l.open.released {
		l.joined = true
		l.f.round.join(l)
	}
	if len(l.queue) != queued {
		wake(l.sealer)
	}
	if l.open != nil && l.due != due {
		l.timer.Reset(time.Until(l.due))
	}
	return true
}

// begin opens a frame that the event may enter.
func (l *lane) begin(in *intake, e *event.Event) {
	framing := wire.NDJSON
	if in.newline(e) {
		framing = wire.Prefixed
	}
	limit := l.f.cfg.FrameBytes
	l.open, l.due = openFrame(min(l.size+l.size/8, limit), limit, framing, in.batch.TableVersion), in.due
	if len(l.after) > 0 {
		l.open.draft.meta.After, l.open.names = append(l.open.draft.meta.After, l.after...), l.told
	}
}

// cut closes the open frame: it waits for the sealer.
func (l *lane) cut() {
	l.size = max(len(l.open.draft.raw.b), l.size-l.size/4)
	l.queue = append(l.queue, l.open)
	l.open, l.due = nil, time.Time{}
}

// close makes the lane's goroutines end when all it holds is confirmed.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closing = true
	l.leave()
	wake(l.sealer)
	wake(l.sender)
}
