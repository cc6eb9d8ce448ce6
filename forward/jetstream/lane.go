package jetstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
)

// lane is what the backend knows of one subject. Only the goroutine that sends for the partition uses it.
type lane struct {
	partition int32
	subject   string
	store     string // name of the JetStream stream

	known  bool   // the numbers below are from the stream
	last   uint64 // number that the lane's numbers go on behind: stored, or higher when the stream may have lost its end
	stored uint64 // number of the last event stored, 0 for none
	seq    uint64 // sequence of the message with it: what the next publish expects; 0 for none

	fulls   int   // answers in a row that the stream is full
	gone    bool  // the stream was not there for the last publish
	unsure  bool  // a publish has no answer: it may be stored after seq
	stopped error // somebody else writes this subject; nothing is sent any more

	claimed bool // what an earlier process has sent and the server has not got yet is refused

	sealing uint64 // table version of the newest SEAL marker that this process has sent, 0 for none
	sealed  uint64 // of the one that is known to be stored
}

func (b *Backend) lane(partition int32) *lane {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lanes[partition]
	if l == nil {
		l = &lane{
			partition: partition, subject: Subject(b.cfg.Stream, partition, b.cfg.Gateway),
			store: storeName(b.cfg.Stream, int(partition)%b.cfg.Streams),
		}
		b.lanes[partition] = l
	}
	return l
}

func (b *Backend) resume(ctx context.Context, l *lane) (err error) {
	for range 3 { // what comes late comes between two of its messages
		if err = b.resumeOnce(ctx, l); !isCode(err, wrongLastSequence) {
			break
		}
	}
	return err
}

func (b *Backend) resumeOnce(ctx context.Context, l *lane) error {
	m, err := b.lastOf(ctx, l)
	switch {
	case errors.Is(err, js.ErrMsgNotFound):
		m = Message{}
		if b.cfg.Lost > 0 { // this may be a lane that has lost all it had
			m.Above = lostNumbers
		}
	case err != nil:
		return fmt.Errorf("resume %s: %w", l.subject, err)
	case m.Last == 0 && !m.Marker:
		return b.stop(l, &ChainError{Subject: l.subject, Found: m.Seq, Reason: "not a gateway's message"})
	case m.Seq < b.cfg.Lost:
		m.Above = max(m.Last, m.Above) + lostNumbers
		b.log.Warn("the lane may have lost its end to a damage, its numbers go on above", "subject", l.subject, "stored", m.Last, "above", m.Above)
	}
	return b.take(ctx, l, &m)
}

// publish sends the run with the chain check and finds out what became of it.
func (b *Backend) publish(ctx context.Context, l *lane, run *forward.Run) error {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
	defer cancel()
	msg := message(l, run)
	waiting, done := b.cfg.Link.bound(ctx)
	ack, err := b.js.PublishMsg(waiting, msg, js.WithRetryAttempts(0))
	err = done(err)
	full := isFull(err)
	if !full && l.fulls > 0 {
		l.fulls = 0
		b.cfg.OnFull(l.store, 0)
	}
	if err == nil && !ack.Duplicate {
		l.confirm(ack.Sequence, run.Last)
		return nil
	}
	if err == nil {
		// The server has forgotten nothing of this id in two minutes, but the lane's chain may have been purged
		// since: only the message itself says that the run is stored.
		err = errDuplicateID
	}
	if definite(err) {
		if full {
			b.cfg.OnFull(l.store, int64(msg.Size())+recordOverhead)
			l.fulls++
			return &forward.SendError{Code: event.BackendFull, Reason: "full", After: min(fullWait, firstFullWait<<min(l.fulls, 10)), Err: err}
		}
		return err
	}
	l.unsure = true
	l.gone = errors.Is(err, js.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) || isCode(err, js.JSErrCodeStreamNotFound)
	if !errors.Is(err, errDuplicateID) && !isCode(err, wrongLastSequence) {
		return err
	}
	if stored, look := b.settle(ctx, l, run); stored || look != nil {
		return look
	}
	return err
}

func (l *lane) confirm(seq, last uint64) {
	l.seq, l.last, l.stored, l.unsure = seq, max(last, l.last), last, false
}
