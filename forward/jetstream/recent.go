package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
)

// Recent says what to read of the end of a gateway's lanes.
type Recent struct {
	Stream, Gateway string
	Since           func(newest time.Time) time.Time // from when on, as the newest run of the lanes was stored then
	Bytes           int64                            // most of each JetStream stream, about: the newest
}

// Recent calls yield with the runs that are at the end of a gateway's lanes, each lane's in their order. Where nothing is
// stored there are none.
func (r *Reader) Recent(ctx context.Context, q Recent, yield func(Message) error) error {
	for k := range r.spread {
		s, err := r.stream(ctx, q.Stream, k)
		if errors.Is(err, ErrNoStream) {
			continue
		}
		if err == nil && s.CachedInfo().State.Msgs > 0 {
			err = q.read(ctx, s, yield)
		}
		if err != nil {
			return fmt.Errorf("read the end of stream %s: %w", q.Stream, err)
		}
	}
	return nil
}

// read reads one JetStream stream.
func (q *Recent) read(ctx context.Context, s js.Stream, yield func(Message) error) error {
	var newest time.Time
	ends := js.OrderedConsumerConfig{DeliverPolicy: js.DeliverLastPerSubjectPolicy, HeadersOnly: true}
	if _, err := q.consume(ctx, s, ends, 0, func(m Message) error {
		if m.Time.After(newest) {
			newest = m.Time
		}
		return nil
	}); err != nil || newest.IsZero() {
		return err
	}
	since := q.Since(newest)
	state := s.CachedInfo().State
	most := uint64(q.Bytes)/max(1, state.Bytes/state.Msgs) + 1
	byTime := js.OrderedConsumerConfig{DeliverPolicy: js.DeliverByStartTimePolicy, OptStartTime: &since}
	more, err := q.consume(ctx, s, byTime, most, yield)
	if err != nil || !more {
		return err
	}
	bySeq := js.OrderedConsumerConfig{DeliverPolicy: js.DeliverByStartSequencePolicy, OptStartSeq: max(state.LastSeq, most) - most + 1}
	_, err = q.consume(ctx, s, bySeq, 0, yield)
	return err
}

// consume reads up to what is stored now; of more than most messages, 0 for any number, it reads none and says so.
func (q *Recent) consume(ctx context.Context, s js.Stream, cfg js.OrderedConsumerConfig, most uint64, yield func(Message) error) (more bool, err error) {
	cfg.FilterSubjects = []string{fmt.Sprintf("headgate.%s.*.%s", q.Stream, q.Gateway)}
	cfg.InactiveThreshold, cfg.MaxResetAttempts = abandoned, resets
	consumer, err := s.OrderedConsumer(ctx, cfg)
	if err != nil {
		return false, err
	}
	pending := consumer.CachedInfo().NumPending
	if pending == 0 || most > 0 && pending > most {
		return pending > 0, nil
	}
	messages, err := consumer.Messages(js.PullMaxBytes(readAhead))
	if err != nil {
		return false, err
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Stop)()
	w := walk{end: s.CachedInfo().State.LastSeq, markers: cfg.HeadersOnly, pending: unread(ctx, consumer)}
	return false, w.run(ctx, messages, yield)
}
