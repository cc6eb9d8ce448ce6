package gateway

import (
	"context"
	"errors"
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

var errIdle = errors.New("nothing new comes")

// read yields messages with the time that it is for who arranges them: what is stored has all the time to come, and what follows
// has not.
func (r *reading) read(ctx context.Context, q jetstream.Query, yield func(jetstream.Message, time.Time) error) error {
	bus, began := r.of.delivery.bus, time.Now()
	if q.Follow && r.idle == 0 {
		return bus.reader.Read(ctx, q, func(m jetstream.Message) error { return yield(m, time.Now()) })
	}
	follow, after := q.Follow, make([]uint64, bus.spread)
	copy(after, q.After)
	q.Follow = false
	err := bus.reader.Read(ctx, q, func(m jetstream.Message) error {
		share := int(m.Partition) % bus.spread
		after[share] = max(after[share], m.Seq)
		return yield(m, began)
	})
	if err != nil || !follow {
		return err
	}
	q.Follow, q.After = true, after
	return r.untilIdle(ctx, q, yield)
}

func (r *reading) untilIdle(ctx context.Context, q jetstream.Query, yield func(jetstream.Message, time.Time) error) error {
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
				if r.of.forwarder.Waiting() == 0 || time.Since(since) > mostOnTheWay {
					end(errIdle)
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
		return yield(m, time.Now())
	})
	if errors.Is(context.Cause(ctx), errIdle) {
		return nil
	}
	return err
}
