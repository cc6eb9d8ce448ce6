package gateway

import (
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/window"
)

// pace refuses the events whose keys are over their rate. It comes behind the look at the ids, so that a repetition, which
// is not stored, takes nothing of the rate; the ids that were claimed for what is refused are free again.
func (s *stream) pace(keys *keyRate, b *event.Batch, p *passage) error {
	known := b.Counts().Rejected
	if keys.apply(b, time.Now()) == 0 {
		return nil
	}
	if b.Strict {
		keys.refund(b)
		return strictRefusal()
	}
	if p.claim == nil {
		return nil
	}
	detail := keys.detail
	p.slow = make([]window.Fate, 0, b.Counts().Rejected-known)
	for i := range b.Events {
		if b.Events[i].Verdict == event.Rejected {
			p.slow = append(p.slow, window.Fate{Place: int32(i), Verdict: event.Rejected, Code: event.KeyRate, Detail: detail})
		}
	}
	p.claim.Refuse(p.slow)
	return nil
}

func strictRefusal() *event.Problem {
	return event.Problemf(event.StrictRejected, "events were refused and mode=strict stores all or nothing; see errors")
}
