package forward

import (
	"context"
	"errors"
	"time"
)

// Pauses between tries: at most this, doubled at each failure up to the cap, which a recovered backend is
// noticed within.
const (
	firstPause = 20 * time.Millisecond
	pauseCap   = 3 * time.Second
)

// pause returns how long to wait after the given number of failures in a row: exponential, full jitter after
// the cap (a random part of it, so that lanes do not return together), and no less than the backend asks for.
// random is in [0,1).
func pause(failures int, asked time.Duration, random float64) time.Duration {
	most := pauseCap
	if doublings := failures - 1; doublings < 10 {
		most = min(pauseCap, firstPause<<doublings)
	}
	return max(time.Duration(random*float64(most)), asked)
}

// asked returns what a failed call said about the next one.
func asked(err error) time.Duration {
	if se, ok := errors.AsType[*SendError](err); ok {
		return se.After
	}
	return 0
}

// refused returns the error that says that a retry is pointless, nil when err doesn't.
func refused(err error) *SendError {
	if se, ok := errors.AsType[*SendError](err); ok && se.Refused {
		return se
	}
	return nil
}

// reason is the label under which a failure is counted.
func reason(err error) string {
	if se, ok := errors.AsType[*SendError](err); ok && se.Reason != "" {
		return se.Reason
	} else if ok && se.Refused {
		return "refused"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	return "error"
}

// sleep waits for d and reports false when ctx ended first. It is shorter when the lane need not go on after one more try.
func (l *lane) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	case <-l.quit:
		return true
	}
}
