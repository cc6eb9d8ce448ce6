package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
)

// ErrNoStream says that the backend holds no such stream.
var ErrNoStream = errors.New("no such stream in the backend")

// Stop is returned by the function given to Read to end it without an error.
var Stop = errors.New("stop")

const (
	// readAhead bounds what is fetched before it is asked for: two messages of the largest size.
	readAhead = 16 << 20
	// idle is how long a read of what is stored waits for a message before it asks whether there is one; the
	// rest may have been purged.
	idle = 2 * time.Second
	// abandoned is when the server forgets a reader that went away.
	abandoned = 30 * time.Second
	// resets bounds the attempts, with growing pauses, to go on after the stream or the connection went away.
	resets = 5
)

// Query says what to read of a stream.
type Query struct {
	Stream    string
	Partition *int32 // nil: all
	From      uint64 // first Message.Seq wanted; 0: the start
	Now       bool   // only what is stored from now on; From is not looked at
	Limit     int    // most messages to read; 0: no limit
	Follow    bool   // go on with what is stored later, until ctx ends; else up to what is stored now
}

// State is what a stream holds, markers included.
type State struct {
	Messages, Bytes uint64
	MaxBytes        int64
	First, Last     uint64 // Message.Seq of the oldest and the newest message
}

// Reader reads streams back, whichever gateway wrote them. It may be used concurrently; give it a connection of
// its own, so that publishing does not wait behind what is read.
type Reader struct{ js js.JetStream }

// NewReader returns a reader over nc.
func NewReader(nc *nats.Conn) (*Reader, error) {
	api, err := js.New(nc)
	if err != nil {
		return nil, fmt.Errorf("read streams: %w", err)
	}
	return &Reader{js: api}, nil
}

// State returns what a stream holds now, or ErrNoStream.
func (r *Reader) State(ctx context.Context, stream string) (State, error) {
	s, err := r.stream(ctx, stream)
	if err != nil {
		return State{}, err
	}
	info := s.CachedInfo()
	return State{
		Messages: info.State.Msgs, Bytes: info.State.Bytes, MaxBytes: info.Config.MaxBytes,
		First: info.State.FirstSeq, Last: info.State.LastSeq,
	}, nil
}

func (r *Reader) stream(ctx context.Context, name string) (js.Stream, error) {
	if !streamToken.MatchString(name) {
		return nil, fmt.Errorf("%q: %w", name, ErrNoStream)
	}
	s, err := r.js.Stream(ctx, StreamName(name))
	if errors.Is(err, js.ErrStreamNotFound) {
		return nil, fmt.Errorf("%s: %w", name, ErrNoStream)
	}
	return s, err
}

// Read calls yield with the messages asked for, in the order in which the stream stored them, and returns the
// first error of yield, nil for Stop; the end of ctx is ctx's error. SEAL markers are left out.
func (r *Reader) Read(ctx context.Context, q Query, yield func(Message) error) error {
	s, err := r.stream(ctx, q.Stream)
	if err != nil {
		return fmt.Errorf("read stream: %w", err)
	}
	end := s.CachedInfo().State.LastSeq
	if !q.Follow && (q.Now || q.From > end || end == 0) {
		return nil
	}
	consumer, err := s.OrderedConsumer(ctx, consumerConfig(q))
	if err != nil {
		return fmt.Errorf("read stream %s: %w", q.Stream, err)
	}
	if !q.Follow && consumer.CachedInfo().NumPending == 0 {
		return nil
	}
	messages, err := consumer.Messages(js.PullMaxBytes(readAhead))
	if err != nil {
		return fmt.Errorf("read stream %s: %w", q.Stream, err)
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Stop)()

	w := walk{query: q, end: end, pending: func() (uint64, error) {
		info, err := consumer.Info(ctx)
		if err != nil {
			return 0, err
		}
		return info.NumPending, nil
	}}
	if err := w.run(ctx, messages, yield); err != nil && !errors.Is(err, Stop) {
		return err
	}
	return nil
}

func consumerConfig(q Query) js.OrderedConsumerConfig {
	partition := "*"
	if q.Partition != nil {
		partition = fmt.Sprint(*q.Partition)
	}
	cfg := js.OrderedConsumerConfig{
		FilterSubjects:    []string{fmt.Sprintf("headgate.%s.%s.*", q.Stream, partition)},
		InactiveThreshold: abandoned,
		MaxResetAttempts:  resets,
	}
	switch {
	case q.Now:
		cfg.DeliverPolicy = js.DeliverNewPolicy
	case q.From > 0:
		cfg.DeliverPolicy, cfg.OptStartSeq = js.DeliverByStartSequencePolicy, q.From
	}
	return cfg
}

// walk is one Read on its way.
type walk struct {
	query   Query
	end     uint64 // last sequence when it began
	pending func() (uint64, error)
}

func (w *walk) run(ctx context.Context, messages js.MessagesContext, yield func(Message) error) error {
	for n := 0; ; {
		msg, err := w.next(ctx, messages)
		if err != nil || msg == nil {
			return err
		}
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		if !w.query.Follow && meta.Sequence.Stream > w.end {
			return nil
		}
		m := parse(msg.Subject(), msg.Headers(), msg.Data()).at(meta.Sequence.Stream, meta.Timestamp)
		if !m.Marker {
			if err := yield(m); err != nil {
				return err
			}
			if n++; n == w.query.Limit {
				return nil
			}
		}
		if !w.query.Follow && (meta.NumPending == 0 || m.Seq == w.end) {
			return nil
		}
	}
}

// next returns the next message; nil at the end of what is stored.
func (w *walk) next(ctx context.Context, messages js.MessagesContext) (js.Msg, error) {
	for {
		wait := js.NextContext(ctx)
		if !w.query.Follow {
			wait = js.NextMaxWait(idle)
		}
		msg, err := messages.Next(wait)
		if err == nil {
			return msg, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !errors.Is(err, nats.ErrTimeout) {
			return nil, err
		}
		if left, err := w.pending(); err != nil || left == 0 {
			return nil, err
		}
	}
}
