package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
)

const unavailable = event.BackendUnavailable

// failure is what is known of a run that a node did not take.
type failure struct {
	misconfigured bool          // only people can help
	after         time.Duration // pause that the node asks for, 0 for none
	code          event.Code
	reason        string // label
	err           error
}

// answer is what a node said to a run.
type answer struct {
	status           int
	retryAfter, date string // headers, "" where absent
	body             []byte // valid until the next exchange
}

// outcome sorts what came of an exchange: delivered (both nil), or refused for the content's sake, or not taken.
func outcome(a answer, err error) (refused *forward.SendError, failed *failure) {
	if err != nil {
		return nil, broken(err)
	}
	return judge(a, time.Now())
}

// err is the answer for people to read.
func (a answer) err() error {
	const most = 200
	if len(a.body) == 0 {
		return fmt.Errorf("answered %d %s", a.status, http.StatusText(a.status))
	}
	return fmt.Errorf("answered %d %s: %q", a.status, http.StatusText(a.status), a.body[:min(len(a.body), most)])
}

// judge sorts an answer.
func judge(a answer, now time.Time) (refused *forward.SendError, failed *failure) {
	if a.status >= 200 && a.status <= 299 {
		return nil, nil
	}
	text := a.err()
	switch s := a.status; {
	case s == 413:
		return &forward.SendError{Refused: true, Code: event.EventTooLarge, Reason: "too_large", Err: text}, nil
	case s == 400, s == 422:
		return &forward.SendError{Refused: true, Code: event.BackendRefused, Reason: "refused", Err: text}, nil
	case s == 507:
		return nil, &failure{code: event.BackendFull, reason: "full", after: pause(a, now), err: text}
	case s == 408, s == 425, s == 429, s >= 500:
		return nil, &failure{code: unavailable, reason: "status_" + strconv.Itoa(s/100*100), after: pause(a, now), err: text}
	default:
		return nil, &failure{misconfigured: true, code: unavailable, reason: "misconfigured", err: text}
	}
}

// mayBeStored tells whether a node that did not confirm a run may have stored it all the same: it gave no answer, or one that says
// that something went wrong on its side.
func mayBeStored(a answer, err error) bool {
	return err != nil || a.status >= 500 && a.status != 503 && a.status != 507
}

// pause reads Retry-After in both its forms (RFC 9110, 10.2.3): seconds, or a date, which is compared with the
// answer's own Date if it has one, since the clocks may differ. 0: none, or none that makes sense.
func pause(a answer, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(a.retryAfter, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	until, err := http.ParseTime(a.retryAfter)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(a.date); err == nil {
		now = date
	}
	return max(until.Sub(now), 0)
}

// broken sorts an exchange that ended without an answer.
func broken(err error) *failure {
	f := &failure{code: unavailable, reason: "connection", err: err}
	var network net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, fasthttp.ErrTimeout), errors.As(err, &network) && network.Timeout():
		f.reason = "timeout"
	}
	return f
}
