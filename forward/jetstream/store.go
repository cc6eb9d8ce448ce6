// Package jetstream is the backend on NATS JetStream, embedded or a cluster: one stream of messages per stream of
// events, one subject per lane, and on every message the check that makes a lane a chain without doubles.
package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/event"
)

// Config says which stream a backend writes and as which gateway. Stream, Gateway and MaxBytes are required.
type Config struct {
	Stream   string
	Gateway  string        // this gateway's id; no other process may write under it
	MaxBytes int64         // what the stream may hold; full, it refuses what is new
	Replicas int           // 0: one
	Timeout  time.Duration // of one publish or read; 0: 10 s
}

const (
	defaultTimeout = 10 * time.Second

	// duplicateWindow only saves work in a cluster; nothing relies on it.
	duplicateWindow = 2 * time.Minute

	// runHeadroom is left for subject and headers in a message of the largest size.
	runHeadroom = 64 << 10
)

// token is what a gateway may be called, so that it is one token of a subject; streamToken likewise, or two for the
// dead letter of a stream. A stream's own subjects have two tokens behind its name, so that the two never overlap.
var (
	token       = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}$`)
	streamToken = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}(` + regexp.QuoteMeta(event.DeadLetterSuffix) + `)?$`)
)

// StreamName returns the name of the JetStream stream that holds a stream: HEADGATE_web, HEADGATE_web_DEADLETTER.
func StreamName(stream string) string {
	if of, ok := strings.CutSuffix(stream, event.DeadLetterSuffix); ok {
		return "HEADGATE_" + of + "_DEADLETTER"
	}
	return "HEADGATE_" + stream
}

// Subject returns the subject of a lane.
func Subject(stream string, partition int32, gateway string) string {
	return fmt.Sprintf("headgate.%s.%d.%s", stream, partition, gateway)
}

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

// Open creates the stream, or brings an existing one to cfg, and returns its backend. An existing stream that
// holds more than cfg.MaxBytes keeps all it has and takes nothing new.
func Open(ctx context.Context, nc *nats.Conn, cfg Config, log *slog.Logger) (*Backend, error) {
	if !streamToken.MatchString(cfg.Stream) || !token.MatchString(cfg.Gateway) || cfg.MaxBytes <= 0 {
		return nil, fmt.Errorf("open stream %q of gateway %q: bad name or no size", cfg.Stream, cfg.Gateway)
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	cfg.Replicas = cmp.Or(cfg.Replicas, 1)
	api, err := js.New(nc, js.WithDefaultTimeout(cfg.Timeout))
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", cfg.Stream, err)
	}
	log = log.With("stream", cfg.Stream)
	if err := ensure(ctx, api, cfg, log); err != nil {
		return nil, fmt.Errorf("open stream %s: %w", cfg.Stream, err)
	}
	return &Backend{cfg: cfg, nc: nc, js: api, log: log, lanes: make(map[int32]*lane)}, nil
}

func ensure(ctx context.Context, api js.JetStream, cfg Config, log *slog.Logger) error {
	stream, err := api.Stream(ctx, StreamName(cfg.Stream))
	if errors.Is(err, js.ErrStreamNotFound) {
		if _, err = api.CreateStream(ctx, definition(js.StreamConfig{}, cfg)); isFull(err) {
			return errors.Join(ErrFull, err)
		}
		return err
	}
	if err != nil {
		return err
	}
	info := stream.CachedInfo()
	want := definition(info.Config, cfg)
	if reflect.DeepEqual(want, info.Config) {
		return nil
	}
	if _, err = api.UpdateStream(ctx, want); isFull(err) {
		log.WarnContext(ctx, "stream keeps its size, the server has no room for the new one",
			"max_bytes", info.Config.MaxBytes, "wanted", want.MaxBytes)
		return nil
	}
	return err
}

// definition sets what we decide of a stream and leaves an operator's placement and the like alone. There is no
// MaxAge: messages go by our own purge, which keeps the last one of each lane.
func definition(c js.StreamConfig, cfg Config) js.StreamConfig {
	c.Name = StreamName(cfg.Stream)
	c.Subjects = []string{fmt.Sprintf("headgate.%s.*.*", cfg.Stream)}
	c.Storage = js.FileStorage
	c.Retention = js.LimitsPolicy
	c.Discard = js.DiscardNew // an update to fewer bytes drops nothing either
	c.MaxBytes = cfg.MaxBytes
	c.MaxAge = 0
	c.Replicas = cfg.Replicas
	c.Duplicates = duplicateWindow
	c.AllowMsgTTL = true // for SEAL markers, which say that they never expire
	c.AllowDirect = true
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
