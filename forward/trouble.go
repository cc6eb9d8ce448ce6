package forward

import (
	"errors"

	"github.com/headgate-io/headgate/event"
)

// failed notes that the lane's last call of the backend failed. The first failure in a row is logged, further
// ones are counted.
func (l *lane) failed(what string, failures int, err error) {
	code := event.BackendUnavailable
	if se, ok := errors.AsType[*SendError](err); ok && se.Code != "" {
		code = se.Code
	}
	l.trouble.Store(&code)
	if failures == 1 {
		l.f.log.Warn("the backend took nothing: trying until it does", "call", what, "partition", l.partition, "err", err)
	}
}

// recovered notes that the lane's last call of the backend got through after so many failures.
func (l *lane) recovered(what string, failures int) {
	l.trouble.Store(nil)
	if failures > 0 {
		l.f.log.Info("the backend answers again", "call", what, "partition", l.partition, "failures", failures)
	}
}
