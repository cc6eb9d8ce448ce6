package ingest

import (
	"cmp"
	"context"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/session"
)

// raise returns when what the session has sent at accepted, on another stream, is durable: at a higher level that is said of everything
// up to settled, and written down. The session is given up otherwise.
func (a *attachment) raise(ctx context.Context) (no *session.Error) {
	timer := time.NewTimer(raiseTime)
	defer timer.Stop()
	for !a.caughtUp() {
		no = elsewhere()
		select {
		case <-a.durable:
			continue
		case <-a.ended:
			a.mu.Lock()
			no = cmp.Or(a.why, no)
			a.mu.Unlock()
		case <-a.conn.accepting.Done():
		case <-ctx.Done():
		case <-timer.C:
			no = &session.Error{Retryable: true, Code: string(event.AckTimeout), Detail: "events that the session has sent at accepted are not durable, or were set aside; go on at accepted, or in a new session"}
		}
		a.of.detach(a.state)
		close(a.done)
		return no
	}
	return nil
}

// raiseTime is how long that may take: shorter than a client that hears nothing stays.
const raiseTime = 10 * time.Second

// caughtUp reports whether everything that is settled is durable. What is watched behind it was lost before it was settled, and comes again.
func (a *attachment) caughtUp() bool {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if a.state.durable < a.state.settled && !a.state.forgotten {
		return false
	}
	a.state.coming = nil
	return true
}
