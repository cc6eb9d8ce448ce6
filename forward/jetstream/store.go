// Package jetstream is the backend on NATS JetStream, embedded or a cluster: one stream of messages per stream of
// events, one subject per lane, and on every message the check that makes a lane a chain without doubles.
package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
)

// Config says which stream a backend writes and as which gateway. Stream and Gateway are required.
type Config struct {
	Stream   string
	Gateway  string        // this gateway's id; no other process may write under it
	MaxBytes int64         // what each JetStream stream that is made may hold; full, it refuses what is new. 0: no bound. Existing ones keep theirs
	Replicas int           // 0: one
	Timeout  time.Duration // of one publish or read; 0: 10 s

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
	cfg Config
	nc  *nats.Conn
	js  js.JetStream
	log *slog.Logger

	mu    sync.Mutex
	lanes map[int32]*lane // a lane belongs to the one goroutine that sends for its partition
	alarm error           // of all stopped lanes
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
	log = log.With("stream", cfg.Stream)
	for k := range cfg.Streams {
		if err := ensure(ctx, api, cfg, k); err != nil {
			return nil, fmt.Errorf("open stream %s: %w", storeName(cfg.Stream, k), err)
		}
	}
	return &Backend{cfg: cfg, nc: nc, js: api, log: log, lanes: make(map[int32]*lane)}, nil
}

// SpreadError says that a stream was made to be spread over another number of streams, so that lanes would lose their
// chains.
type SpreadError struct {
	Stream       string
	Found, Asked string
}

// Error names both numbers.
func (e *SpreadError) Error() string {
	return fmt.Sprintf("%s was made with streams: %s and cannot go on with %s; set it back, or use another stream", e.Stream, e.Found, e.Asked)
}

func ensure(ctx context.Context, api js.JetStream, cfg Config, k int) error {
	stream, err := api.Stream(ctx, storeName(cfg.Stream, k))
	if errors.Is(err, js.ErrStreamNotFound) {
		if _, err = api.CreateStream(ctx, definition(js.StreamConfig{MaxBytes: cfg.MaxBytes}, cfg, k)); isFull(err) {
			return errors.Join(ErrFull, err)
		}
		return err
	}
	if err != nil {
		return err
	}
	info := stream.CachedInfo()
	asked := strconv.Itoa(cfg.Streams)
	if found := cmp.Or(info.Config.Metadata[spreadKey], "1"); found != asked {
		return &SpreadError{Stream: info.Config.Name, Found: found, Asked: asked}
	}
	want := definition(info.Config, cfg, k)
	if reflect.DeepEqual(want, info.Config) {
		return nil
	}
	_, err = api.UpdateStream(ctx, want)
	return err
}

// spreadKey is where a JetStream stream says over how many its stream is spread; absent on those that are alone.
const spreadKey = "headgate.streams"

// definition sets what we decide of a stream and leaves its size, an operator's placement and the like alone. There is
// no MaxAge: messages go by our own purge, which keeps the last one of each lane.
func definition(c js.StreamConfig, cfg Config, k int) js.StreamConfig {
	c.Name = storeName(cfg.Stream, k)
	c.Subjects = subjects(cfg, k)
	c.Storage = js.FileStorage
	c.Retention = js.LimitsPolicy
	c.Discard = js.DiscardNew // an update to fewer bytes drops nothing either
	c.MaxAge = 0
	c.Replicas = cfg.Replicas
	c.Duplicates = duplicateWindow
	c.AllowMsgTTL = true // for SEAL markers, which say that they never expire
	c.AllowDirect = true
	if cfg.Streams > 1 {
		c.Metadata = maps.Clone(c.Metadata)
		if c.Metadata == nil {
			c.Metadata = map[string]string{}
		}
		c.Metadata[spreadKey] = strconv.Itoa(cfg.Streams)
	}
	return c
}

// MaxRun returns the bytes a run's payload may have.
func (b *Backend) MaxRun() int { return int(b.nc.MaxPayload()) - runHeadroom }

// Err returns why lanes have been stopped, joined, or nil. A stopped lane starts again with the process.
func (b *Backend) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.alarm
}
