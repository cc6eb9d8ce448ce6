// Package jetstream is the backend on NATS JetStream, embedded or a cluster: one stream of messages per stream of
// events, one subject per lane, and on every message the check that makes a lane a chain without doubles.
package jetstream

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
)

// Config says which stream a backend writes and as which gateway. Stream and Gateway are required.
type Config struct {
	Stream   string
	Gateway  string        // this gateway's id; no other process may write under it
	MaxBytes int64         // what each JetStream stream that is made may hold; full, it refuses what is new. 0: no bound. Existing ones keep theirs
	Replicas int           // 0: one
	Timeout  time.Duration // of one publish or read; 0: 10 s

	// Own says that nobody else can reach the server: what is missing there was lost, and not removed.
	Own bool

	Link *Link // of the connection; nil: an answer is waited for although the connection was lost

	// OnFull is called with the name of a JetStream stream that was found full, and the bytes of the message it could not
	// take, and with 0 when it takes messages again; it must not block. nil: nothing.
	OnFull func(store string, bytes int64)

	// Lost is the sequence up to which the stream has lost messages to a damage; 0: none. A lane that ends before it may have
	// lost its end, and with it the numbers that were given last: it goes on far above them.
	Lost uint64

	Streams    int // JetStream streams that the partitions are spread over, which cannot be changed later; 0: one
	Partitions int // of the stream; needed with more than one
}

const (
	defaultTimeout = 10 * time.Second

	// duplicateWindow only saves work in a cluster; nothing relies on it.
	duplicateWindow = 2 * time.Minute

	// lostNumbers is more than a lane can have lost: readers find a gap instead of numbers they know.
	lostNumbers = 1 << 32

	// runHeadroom is left for subject and headers in a message of the largest size.
	runHeadroom = 64 << 10
)

// Backend writes one stream. It implements forward.Backend.
type Backend struct {
	cfg   Config
	nc    Conn
	js    js.JetStream
	log   *slog.Logger
	claim string // names this life of the gateway

	mu    sync.Mutex
	lanes map[int32]*lane // a lane belongs to the one goroutine that sends for its partition
	alarm error           // of all stopped lanes

	making sync.Mutex // of streams that are gone

	keeps atomic.Bool // claims of earlier starts can't be removed
}

// Open creates the stream, or brings an existing one to cfg, and returns its backend.
func Open(ctx context.Context, nc *nats.Conn, cfg Config, log *slog.Logger) (*Backend, error) {
	if !streamToken.MatchString(cfg.Stream) || !token.MatchString(cfg.Gateway) || cfg.MaxBytes < 0 {
		return nil, fmt.Errorf("open stream %q of gateway %q: bad name or size", cfg.Stream, cfg.Gateway)
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	if cfg.OnFull == nil {
		cfg.OnFull = func(string, int64) {}
	}
	cfg.Replicas, cfg.Streams = cmp.Or(cfg.Replicas, 1), cmp.Or(cfg.Streams, 1)
	if cfg.Streams > 1 && cfg.Streams > cfg.Partitions {
		return nil, fmt.Errorf("open stream %s: its %d partitions cannot be spread over %d streams", cfg.Stream, cfg.Partitions, cfg.Streams)
	}
	api, err := js.New(nc, js.WithDefaultTimeout(cfg.Timeout))
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", cfg.Stream, err)
	}
	for k := range cfg.Streams {
		if err := ensure(ctx, api, cfg, k); err != nil {
			return nil, fmt.Errorf("open stream %s: %w", storeName(cfg.Stream, k), err)
		}
	}
	return Over(nc, api, cfg, log), nil
}

// Conn is what a backend needs of a connection besides its JetStream.
type Conn interface {
	RequestWithContext(ctx context.Context, subject string, data []byte) (*nats.Msg, error)
	MaxPayload() int64
}

// Over returns the backend of a stream that is there already, as a complete cfg says.
func Over(nc Conn, api js.JetStream, cfg Config, log *slog.Logger) *Backend {
	return &Backend{cfg: cfg, nc: nc, js: api, log: log.With("stream", cfg.Stream), claim: rand.Text(), lanes: make(map[int32]*lane)}
}

// Resume reads the last message of the lane from the stream's leader. See forward.Backend.
func (b *Backend) Resume(ctx context.Context, partition int32) (last uint64, err error) {
	l := b.lane(partition)
	switch {
	case l.stopped != nil:
		return 0, sendError(l.stopped)
	case !l.known:
		if err := b.resume(ctx, l); err != nil {
			return 0, sendError(err)
		}
	}
	return l.last, nil
}

// Send publishes a run behind the lane's last message. See forward.Backend: a run at or below the stored number
// is confirmed; after an answer that did not come the stream is read before anything is published again.
func (b *Backend) Send(ctx context.Context, run *forward.Run) error {
	if run.Stream != b.cfg.Stream {
		return fmt.Errorf("BUG: run of stream %s sent to the backend of %s", run.Stream, b.cfg.Stream)
	}
	l := b.lane(run.Partition)
	if _, err := b.Resume(ctx, run.Partition); err != nil {
		return err
	}
	if l.gone {
		if err := b.remake(ctx, l); err != nil {
			return sendError(err)
		}
		l.gone = false
	}
	if err := b.claimFull(ctx, l); err != nil {
		return sendError(err)
	}
	if l.unsure {
		if stored, err := b.settle(ctx, l, run); stored || err != nil {
			return sendError(err)
		}
	}
	switch {
	case run.Last <= l.stored:
		return nil
	case run.First <= l.stored: // an earlier process sent it in other pieces; those of this one will fit
		err := fmt.Errorf("%s holds events up to %d, the run has %d to %d", l.subject, l.stored, run.First, run.Last)
		return &forward.SendError{Refused: true, Code: event.Internal, Reason: "overlap", Err: err}
	}
	return sendError(b.publish(ctx, l, run))
}

// MaxRun returns the bytes a run's payload may have.
func (b *Backend) MaxRun() int { return MaxRun(b.nc.MaxPayload()) }

// MaxRun is that of a server which takes messages of at most maxPayload bytes.
func MaxRun(maxPayload int64) int { return int(maxPayload) - runHeadroom }

// Err returns why lanes have been stopped, joined, or nil. A stopped lane starts again with the process.
func (b *Backend) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.alarm
}
