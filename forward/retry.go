package forward

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// retry makes a call until it succeeds, or returns the error of ctx when that ends first, or errSafe.
func (l *lane) retry(ctx context.Context, what string, call func(context.Context) error) error {
	for failures := 1; ; failures++ {
		err := call(ctx)
		if err == nil {
			l.recovered(what, failures-1)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l.f.metrics.errors.WithLabelValues(l.f.cfg.BackendName, reason(err)).Inc()
		l.failed(what, failures, err)
		if l.mayLeave() {
			return errSafe
		}
		if !l.sleep(ctx, pause(failures, asked(err), rand.Float64())) {
			return ctx.Err()
		}
	}
}

// limited bounds the time of a call: a backend that does not answer is a failure like any other.
func (l *lane) limited(call func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, l.f.cfg.SendTimeout)
		defer cancel()
		return call(ctx)
	}
}

// alone makes a call of the backend while no other call of the lane is under way: the sealer asks where an empty lane ended, and
// the sender may have to seal it meanwhile.
func (l *lane) alone(ctx context.Context, call func() error) error {
	select {
	case l.calling <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.calling }()
	return call()
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
