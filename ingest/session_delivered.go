package ingest

import (
	"bytes"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/session"
)

// How far a session's events are delivered is a watermark of the session, and not of a stream: it stays where it is once something has
// come to durable only, also when the session is gone on with, or is known from the log alone.

// reached moves it for an outcome that comes next; the sessions' mu is held, and st.settled does not have the outcome yet.
func (st *sessionState) reached(o outcome, level event.Level) {
	if st.delivered = min(st.delivered, st.settled); level >= event.Delivered && st.delivered == st.settled {
		st.delivered = o.last
	}
}

// appendAck appends that everything up to a sequence is settled, of which the client knows what is up to acked: in a session at
// delivered as far as it is.
func (a *attachment) appendAck(frames []byte, acked, upTo, delivered uint64) []byte {
	level := a.level
	if level == event.Delivered {
		if delivered > acked {
			frames, acked = (&session.Ack{Level: session.Delivered, UpTo: delivered}).Append(frames), delivered
		}
		level = event.Durable
	}
	if upTo > acked {
		frames = (&session.Ack{Level: session.Level(level), UpTo: upTo}).Append(frames)
	}
	return frames
}

// deliveredNow is the watermark, which is said at the level delivered alone. A log may say more of it than of what is settled, which
// comes again then.
func (a *attachment) deliveredNow() uint64 {
	if a.level != event.Delivered {
		return 0
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	return min(a.state.delivered, a.state.settled)
}

// In a record the watermark is an ACK in front of the outcome's frames.
func (st *sessionState) appendDelivered(record []byte) []byte {
	if st.delivered == 0 {
		return record
	}
	return (&session.Ack{Level: session.Delivered, UpTo: st.delivered}).Append(record)
}

// cutDelivered takes it off.
func cutDelivered(frames []byte) (delivered uint64, rest []byte) {
	r := bytes.NewReader(frames)
	t, length, err := session.ReadHead(r)
	if err != nil || t != session.TypeAck || length > uint64(r.Len()) {
		return 0, frames
	}
	var a session.Ack
	from := len(frames) - r.Len()
	if a.Parse(frames[from:][:length]) != nil {
		return 0, frames
	}
	return a.UpTo, frames[from:][length:]
}
