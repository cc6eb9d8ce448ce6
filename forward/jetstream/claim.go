package jetstream

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	js "github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
)

// markerClaim is the value of headerMarker on a CLAIM marker.
const markerClaim = "claim"

// A server that outlives its gateway may get what that has sent after the next start has asked where the lane ends: it lies in a
// socket, or the process was only stopped. That publish expects the same last sequence as the next one of the new process, and would
// take its numbers. So a lane on such a server is claimed before it is said where it ends: by a marker behind its last message. What
// was sent before it and comes later is refused.

// take goes on behind m, the lane's last message, once that is sure to stay the last one but for our own.
func (b *Backend) take(ctx context.Context, l *lane, m *Message) error {
	if l.known && max(m.Last, m.Above) > l.last { // numbers were given, while the lane could not be claimed
		return b.stop(l, second(l, m))
	}
	l.last, l.stored, l.seq = max(m.Last, m.Above, l.last), m.Last, m.Seq
	l.claimed = b.cfg.Own || m.Claim == b.claim
	if !l.claimed {
		ctx, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
		defer cancel()
		msg := marker(l, markerClaim)
		msg.Header.Set(headerClaim, b.claim)
		switch ack, err := b.js.PublishMsg(ctx, msg, js.WithRetryAttempts(0)); {
		case isFull(err): // the numbers are needed nevertheless: events may go to the spool. Send claims it
			b.cfg.OnFull(l.store, int64(msg.Size())+recordOverhead)
			l.fulls = max(l.fulls, 1) // what goes in next says that there is room
		case err != nil: // it may be stored; then it is found
			return fmt.Errorf("claim %s: %w", l.subject, err)
		default:
			l.seq, l.claimed = ack.Sequence, true
			b.replaced(ctx, l, m)
		}
	}
	l.known = true
	return nil
}

// claimGone bounds what a start waits for a claim to be removed, a lane.
const claimGone = time.Second

// replaced removes the lane's message m when it was the claim of an earlier start, behind which ours is now: a gateway that starts
// again and again would else fill the stream. Nothing is asked of m any more: what expects it is refused as long as ours is there, and
// ours says all that it said but for numbers given above those stored. It stays when it can't be removed.
func (b *Backend) replaced(ctx context.Context, l *lane, m *Message) {
	if m.Claim == "" || m.Above != 0 || b.keeps.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, min(claimGone, b.cfg.Timeout))
	defer cancel()
	body := fmt.Appendf(nil, `{"seq":%d,"no_erase":true}`, m.Seq)
	reply, err := b.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.DELETE."+l.store, body)
	var answer struct {
		Error *js.APIError `json:"error"`
	}
	if err == nil {
		err = json.Unmarshal(reply.Data, &answer)
	}
	if err == nil && answer.Error != nil {
		err = answer.Error
	}
	if err != nil {
		b.keeps.Store(true) // who may not remove them waits for one lane only
		b.log.InfoContext(ctx, "claims of earlier starts stay in the stream", "subject", l.subject, "error", err)
	}
}

// claimFull claims a lane that could not be claimed at its start, since the stream was full.
func (b *Backend) claimFull(ctx context.Context, l *lane) error {
	if l.claimed {
		return nil
	}
	if err := b.resume(ctx, l); err != nil || l.claimed {
		return err
	}
	return &forward.SendError{Code: event.BackendFull, Reason: "full", After: fullWait, Err: fmt.Errorf("claim %s: %w", l.subject, ErrFull)}
}

// second says that somebody else writes a lane: with m, behind what is known to be ours.
func second(l *lane, m *Message) *ChainError {
	e := &ChainError{Subject: l.subject, After: l.seq, Found: m.Seq, Reason: "a second writer"}
	if m.Claim != "" {
		e.Reason = "a second writer: another process with this gateway's id has taken the lane over"
	}
	return e
}
