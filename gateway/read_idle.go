package gateway

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/headgate-io/headgate/forward/jetstream"
)

// reading is one read of a stream.
type reading struct {
	of   *stream
	idle time.Duration // see admin.Query
}

// mostOnTheWay is how long a read that has an end waits for what was taken and is not stored yet: its backend may be away.
const mostOnTheWay = 30 * time.Second

// Why a read that follows ends.
var (
	errIdle  = errors.New("nothing new comes, and all that was taken is stored")
	errStuck = errors.New("nothing new comes, although not all that was taken is stored")
)

// read yields messages with the time that it is for who arranges them: what is stored has all the time to come, and what follows
// has not.
func (r *reading) read(ctx context.Context, q jetstream.Query, yield func(jetstream.Message, time.Time) error) error {
	bus, began := r.of.delivery.bus, time.Now()
	if q.Follow && r.idle == 0 {
		return bus.reader.Read(ctx, q, func(m jetstream.Message) error { return yield(m, time.Now()) })
	}
	follow, after := q.Follow, make([]uint64, bus.spread)
	copy(after, q.After)
	note := func(m *jetstream.Message) {
		share := int(m.Partition) % bus.spread
		after[share] = max(after[share], m.Seq)
	}
	for idle := false; ; idle = true {
		more := false
		q.Follow = false
		err := bus.reader.Read(ctx, q, func(m jetstream.Message) error {
			more = true
			note(&m)
			return yield(m, began)
		})
		// What was stored right before nothing was on its way any more may not have come yet to who followed.
		if err != nil || !follow || idle && !more {
			return err
		}
		q.Follow, q.After = true, slices.Clone(after)
		err = r.untilIdle(ctx, q, func(m jetstream.Message) error {
			note(&m)
			return yield(m, time.Now())
		})
		switch {
		case errors.Is(err, errStuck):
			return nil
		case !errors.Is(err, errIdle):
			return err
		}
		q.After = slices.Clone(after)
	}
}

// untilIdle follows the stream until nothing comes, and says so as errIdle or errStuck.
func (r *reading) untilIdle(ctx context.Context, q jetstream.Query, yield func(jetstream.Message) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	came := make(chan struct{}, 1)
	go func() {
		timer, since := time.NewTimer(r.idle), time.Now()
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-came:
				since = time.Now()
			case <-timer.C:
				if r.of.forwarder.Waiting() == 0 {
					end(errIdle)
					return
				}
				if time.Since(since) > mostOnTheWay {
					end(errStuck)
					return
				}
			}
			timer.Reset(r.idle)
		}
	}()
	err := r.of.delivery.bus.reader.Read(ctx, q, func(m jetstream.Message) error {
		select {
		case came <- struct{}{}:
		default:
		}
		return yield(m)
	})
	if why := context.Cause(ctx); why == errIdle || why == errStuck {
		return why
	}
	return err
}
