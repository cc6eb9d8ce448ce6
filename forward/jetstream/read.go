package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	Partition *int32   // nil: all
	After     []uint64 // only what is stored behind these State.Ends; nil: from the start
	Now       bool     // only what is stored from now on; After is not looked at
	Limit     int      // most messages to read; 0: no limit
	Follow    bool     // go on with what is stored later, until ctx ends; else up to what is stored now
	Markers   bool     // messages without events too
}

// State is what a stream holds, markers included.
type State struct {
	Messages, Bytes uint64
	MaxBytes        int64    // 0: no bound
	Ends            []uint64 // Message.Seq of the newest message of each JetStream stream that it is spread over
}

// Reader reads streams back, whichever gateway wrote them. It may be used concurrently; give it a connection of
// its own, so that publishing does not wait behind what is read.
type Reader struct {
	js     js.JetStream
	spread int
}

// NewReader returns a reader over nc of streams that are each spread over so many JetStream streams.
func NewReader(nc *nats.Conn, spread int) (*Reader, error) {
	api, err := js.New(nc, js.WithDefaultTimeout(defaultTimeout))
	if err != nil {
		return nil, fmt.Errorf("read streams: %w", err)
	}
	return &Reader{js: api, spread: spread}, nil
}

// State returns what a stream holds now, or ErrNoStream.
func (r *Reader) State(ctx context.Context, stream string) (sum State, err error) {
	for k := range r.spread {
		s, err := r.stream(ctx, stream, k)
		if err != nil {
			return State{}, err
		}
		info := s.CachedInfo()
		sum.Messages, sum.Bytes = sum.Messages+info.State.Msgs, sum.Bytes+info.State.Bytes
		sum.MaxBytes += max(0, info.Config.MaxBytes)
		sum.Ends = append(sum.Ends, info.State.LastSeq)
	}
	return sum, nil
}

func (r *Reader) stream(ctx context.Context, name string, k int) (js.Stream, error) {
	if !streamToken.MatchString(name) {
		return nil, fmt.Errorf("%q: %w", name, ErrNoStream)
	}
	s, err := r.js.Stream(ctx, storeName(name, k))
	if errors.Is(err, js.ErrStreamNotFound) {
		return nil, fmt.Errorf("%s: %w", name, ErrNoStream)
	}
	return s, err
}

// Read calls yield with the messages asked for, one at a time and those of a lane in their order, and returns the first
// error of yield, nil for Stop; the end of ctx is ctx's error. SEAL markers are left out unless they are asked for. A stream that is not spread
// comes in the order in which it was stored.
func (r *Reader) Read(ctx context.Context, q Query, yield func(Message) error) error {
	yield = bounded(yield, q.Limit)
	var err error
	switch {
	case r.spread == 1:
		err = r.readShare(ctx, q, 0, yield)
	case q.Partition != nil:
		err = r.readShare(ctx, q, int(*q.Partition)%r.spread, yield)
	default:
		err = r.readAll(ctx, q, yield)
	}
	if errors.Is(err, Stop) {
		return nil
	}
	return err
}

// bounded ends a read after so many messages; 0 for no limit.
func bounded(yield func(Message) error, limit int) func(Message) error {
	n := 0
	return func(m Message) error {
		if err := yield(m); err != nil {
			return err
		}
		if n++; n == limit {
			return Stop
		}
		return nil
	}
}

// readAll reads the shares of a stream at the same time, and yields under a lock. A lane lies in one share, so its order
// is kept. The first error ends the others.
func (r *Reader) readAll(ctx context.Context, q Query, yield func(Message) error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var turn sync.Mutex
	var all sync.WaitGroup
	for k := range r.spread {
		all.Go(func() {
			end := r.readShare(ctx, q, k, func(m Message) error {
				turn.Lock()
				defer turn.Unlock()
				if ctx.Err() != nil { // another share has ended the reading
					return ctx.Err()
				}
				return yield(m)
			})
			turn.Lock()
			defer turn.Unlock()
			if end != nil && err == nil {
				err = end
				cancel()
			}
		})
	}
	all.Wait()
	return err
}

func (r *Reader) readShare(ctx context.Context, q Query, k int, yield func(Message) error) error {
	s, err := r.stream(ctx, q.Stream, k)
	if err != nil {
		return fmt.Errorf("read stream: %w", err)
	}
	from := uint64(0)
	if k < len(q.After) {
		from = q.After[k] + 1
	}
	end := s.CachedInfo().State.LastSeq
	if !q.Follow && (q.Now || from > end || end == 0) {
		return nil
	}
	consumer, err := s.OrderedConsumer(ctx, consumerConfig(q, from))
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

	w := walk{follow: q.Follow, markers: q.Markers, end: end, pending: unread(ctx, consumer)}
	return w.run(ctx, messages, yield)
}

func consumerConfig(q Query, from uint64) js.OrderedConsumerConfig {
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
	case from > 0:
		cfg.DeliverPolicy, cfg.OptStartSeq = js.DeliverByStartSequencePolicy, from
	}
	return cfg
}

// unread tells whether a consumer has messages behind the last one seen. Such as are on their way look like those that were purged:
// they are waited for once more.
func unread(ctx context.Context, consumer js.Consumer) func(seen uint64) (bool, error) {
	waited := uint64(0) // for what is behind that
	return func(seen uint64) (bool, error) {
		info, err := consumer.Info(ctx)
		if err != nil || info.NumPending > 0 || info.Delivered.Stream <= seen || waited == seen+1 {
			return err == nil && info.NumPending > 0, err
		}
		waited = seen + 1
		return true, nil
	}
}

// walk is the reading of one share on its way.
type walk struct {
	follow  bool
	markers bool   // are yielded too
	end     uint64 // last sequence when it began
	seen    uint64 // sequence of the last message
	pending func(seen uint64) (bool, error)
}

func (w *walk) run(ctx context.Context, messages js.MessagesContext, yield func(Message) error) error {
	for {
		msg, err := w.next(ctx, messages)
		if err != nil || msg == nil {
			return err
		}
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		w.seen = meta.Sequence.Stream
		if !w.follow && w.seen > w.end {
			return nil
		}
		m := parse(msg.Subject(), msg.Headers(), msg.Data()).at(meta.Sequence.Stream, meta.Timestamp)
		if !m.Marker || w.markers {
			if err := yield(m); err != nil {
				return err
			}
		}
		if !w.follow && (meta.NumPending == 0 || m.Seq == w.end) {
			return nil
		}
	}
}

// next returns the next message; nil at the end of what is stored.
func (w *walk) next(ctx context.Context, messages js.MessagesContext) (js.Msg, error) {
	for {
		wait := js.NextContext(ctx)
		if !w.follow {
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
		if more, err := w.pending(w.seen); err != nil || !more {
			return nil, err
		}
	}
}
