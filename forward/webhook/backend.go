// Package webhook is the backend on HTTP nodes: every run is a POST, a partition belongs to one node, and a node that
// fails is left alone until a probe gets through.
package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/headgate-io/headgate/forward"
)

// Config says where the runs of one stream go. Nodes and Numbers are required.
type Config struct {
	Nodes   []string      // http or https URLs, each once; user and password in one are sent as basic authorization
	Timeout time.Duration // of one POST, from dialling to the end of the answer; 0: 10 s
	Numbers string        // file, of this stream and gateway alone, that keeps numbers from coming twice
	TLS     *tls.Config   // for https nodes; nil: the system's authorities, TLS 1.2 and up
}

const defaultTimeout = 10 * time.Second

// Backend posts the runs of one stream. It implements forward.Backend.
type Backend struct {
	timeout time.Duration
	numbers *numbers
	nodes   []*node
	tls     *tls.Config

	mu     sync.Mutex
	lanes  map[int32]*lane
	closed bool
}

var errClosed = errors.New("the backend is closed")

// Open checks cfg and returns its backend, which connects when there is something to send.
func Open(cfg Config, log *slog.Logger) (*Backend, error) {
	nodes, err := parseNodes(cfg.Nodes, log)
	if err != nil {
		return nil, fmt.Errorf("open webhook: %w", err)
	}
	if cfg.Timeout < 0 || cfg.Numbers == "" {
		return nil, errors.New("open webhook: needs a file for numbers and a timeout above zero")
	}
	numbers, err := openNumbers(cfg.Numbers, time.Now(), log)
	if err != nil {
		return nil, fmt.Errorf("open webhook: %w", err)
	}
	settings := cfg.TLS.Clone()
	if settings == nil {
		settings = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	settings.NextProtos = []string{"http/1.1"}
	if settings.ClientSessionCache == nil {
		settings.ClientSessionCache = tls.NewLRUClientSessionCache(len(nodes))
	}
	return &Backend{
		timeout: cmp.Or(cfg.Timeout, defaultTimeout), numbers: numbers, nodes: nodes, tls: settings,
		lanes: make(map[int32]*lane),
	}, nil
}

// Resume returns the number of the last event that the lane sent in this process; before that, one that none of this
// gateway's lanes has used (see numbers). What a node has stored it does not say.
func (b *Backend) Resume(_ context.Context, partition int32) (last uint64, err error) {
	l, err := b.lane(partition)
	if err != nil {
		return 0, &forward.SendError{Code: unavailable, Reason: "closed", Err: err}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, nil
}

// Send posts a run to its partition's node. See forward.Backend, with one difference: what a node stored before its
// answer was lost it gets again, with the same Idempotency-Key, for it to recognise.
func (b *Backend) Send(ctx context.Context, run *forward.Run) error {
	l, err := b.lane(run.Partition)
	if err != nil {
		return &forward.SendError{Code: unavailable, Reason: "closed", Err: err}
	}
	if err := b.numbers.cover(run.Last); err != nil {
		return &forward.SendError{Code: unavailable, Reason: "numbers", Err: err}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = max(l.last, run.Last)
	return l.send(ctx, run, b.timeout)
}

func (b *Backend) lane(partition int32) (*lane, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errClosed
	}
	l := b.lanes[partition]
	if l == nil {
		l = newLane(partition, choose(b.nodes, partition), b.tls)
		l.last = b.numbers.first
		b.lanes[partition] = l
	}
	return l, nil
}

// Err names the nodes that get nothing at the moment, since when, and why; nil when there are none.
func (b *Backend) Err() error {
	var all []error
	for _, n := range b.nodes {
		all = append(all, n.circuit.err())
	}
	return errors.Join(all...)
}

// Close waits for the Sends under way and closes the connections. It may be called twice.
func (b *Backend) Close() {
	b.mu.Lock()
	b.closed = true
	lanes := b.lanes
	b.lanes = nil
	b.mu.Unlock()
	for _, l := range lanes {
		l.mu.Lock()
		l.disconnect()
		l.mu.Unlock()
	}
}
