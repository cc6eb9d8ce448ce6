package forward

import (
	"errors"
	"time"

	"github.com/headgate-io/headgate/event"
)

// trouble is what the backend's last answer was while it is a failure.
type trouble struct {
	code  event.Code // what to tell producers
	since time.Time  // of the first failure in a row
}

// failed notes that the lane's last call of the backend failed. The first failure in a row is logged, further
// ones are counted.
func (l *lane) failed(what string, failures int, err error) {
	now := trouble{event.BackendUnavailable, time.Now()}
	if se, ok := errors.AsType[*SendError](err); ok && se.Code != "" {
		now.code = se.Code
	}
	if before := l.trouble.Load(); before != nil {
		now.since = before.since
	}
	l.trouble.Store(&now)
	if now.code == event.BackendFull && time.Since(now.since) >= fullPatience {
		l.tellFull()
	}
	if failures == 1 {
		l.f.log.Warn("the backend took nothing: trying until it does", "call", what, "partition", l.partition, "error", err)
	}
}

// fullPatience is how long a backend may have no room before requests learn of it, those that wait and new ones: until then
// shares of it may only have to be cut anew, or old runs to go. A stream that fills up gets there again and again.
const fullPatience = time.Second

// tellFull ends the wait of all requests with events in the lane.
func (l *lane) tellFull() {
	l.mu.Lock()
	defer l.mu.Unlock()
	tell := func(fr *frame) {
		for _, p := range fr.parts {
			p.receipt.fill(l.f.spool != nil)
		}
	}
	for _, fr := range l.queue {
		tell(fr)
	}
	if l.open != nil {
		tell(l.open)
	}
}

// recovered notes that the lane's last call of the backend got through after so many failures.
func (l *lane) recovered(what string, failures int) {
	l.trouble.Store(nil)
	if failures > 0 {
		l.f.log.Info("the backend answers again", "call", what, "partition", l.partition, "failures", failures)
	}
}

// Trouble returns why, and since when, the lane that has waited longest gets nothing taken by its backend; "" when the
// backend takes what every lane sends.
func (f *Forwarder) Trouble() (code event.Code, since time.Time) {
	for _, l := range f.lanes {
		if t := l.trouble.Load(); t != nil && (code == "" || t.since.Before(since)) {
			code, since = t.code, t.since
		}
	}
	return code, since
}
