package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/internal/alarm"
	"github.com/headgate-io/headgate/partitioner"
)

// openStream brings the stream's backend and lanes up; nothing runs yet.
func (g *Gateway) openStream(ctx context.Context, name string, def *definition) (*stream, error) {
	secret, err := g.store.Secret(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read hash secret: %w", err)
	}
	stored, table, err := g.openTable(ctx, name, secret, &def.config)
	if err != nil {
		return nil, err
	}
	var meter *partitioner.Meter // a dead letter has one partition for ever
	if _, dead := deadLetterOf(name); !dead {
		meter = partitioner.NewMeter(partitioner.CountersFor(def.config.Partitions.Max))
	}
	s := &stream{
		name: name, partitioner: partitioner.New(table, meter), deadLetter: g.newDeadLetter(name),
		ids: newWindow(&def.config.ID), secret: secret, done: make(chan struct{}),
	}
	s.current.Store(def)
	s.keys.Store(newKeyRate(name, def.config.Rate, g.rates))
	s.chain.Store(&link{})
	if s.delivery, err = g.openDelivery(ctx, name, &def.config); err != nil {
		return nil, err
	}
	if s.deadLetter != nil {
		s.idLog = g.remember(s.ids, g.folder.WindowFolder("ids", name))
	}
	if s.spool, err = g.openSpool(s); err == nil {
		s.forwarder, err = g.newForwarder(s, &def.config, def.config.Partitions.Max)
	}
	if err != nil {
		return nil, errors.Join(err, s.discard())
	}
	if s.spool != nil {
		s.spool.RecallFrom(s.forwarder.Recall)
	}
	g.loseBefore(s)
	if g.unclean || s.ids.Unread() {
		g.recall(ctx, s)
	}
	if meter != nil {
		s.adaptive = g.newAdaptive(s, stored, meter)
		s.adaptive.follow(table.Predecessors())
	}
	return s, nil
}

// newForwarder returns the forwarder of a stream whose delivery and spool are open.
func (g *Gateway) newForwarder(s *stream, cfg *config.Stream, partitions int) (*forward.Forwarder, error) {
	deps := forward.Deps{Budget: g.letters, Log: g.log, Metrics: g.forwardMetrics, Presses: g.presses, Lost: g.loser(s, "the backend")}
	if s.deadLetter != nil { // else it is a dead letter itself
		deps.Budget, deps.DeadLetter = g.lanes.Share(g.lanes.Limit()/2), s.deadLetter
	}
	if s.spool != nil {
		deps.Spool, deps.Backlog, deps.Room = s.spool, s.spool.Backlog, s.spool.Room
		deps.Alarm = func(call func()) forward.Alarm { return alarm.New(call) }
		deps.Again, deps.Check = s.spool.Again, s.delivery.check
		if s.delivery.away { // the others say where lanes ended whenever they are asked
			deps.Reserve = s.spool.Reserve
		}
	}
	frameBytes := int(cfg.Frame.Bytes)
	return forward.New(forward.Config{
		Stream: s.name, Gateway: g.folder.ID, BackendName: cfg.Backend, Partitions: partitions, Codec: cfg.Codec,
		LingerWaiting: time.Duration(cfg.Linger.Waiting), LingerIdle: time.Duration(cfg.Linger.Idle),
		FrameBytes: frameBytes, FrameEvents: cfg.Frame.Events, MaxRun: min(frameBytes, s.delivery.maxRun),
	}, s.delivery.Backend, deps)
}

// run delivers until the forwarder is closed and empty, or what is left is safe in the spool, or ctx ends.
func (s *stream) run(ctx context.Context) error {
	defer close(s.done)
	defer s.delivery.close()
	stopSpool, stopLog, stopAdaptive := s.runSpool(), runJournal(s.idLog), s.runAdaptive(ctx)
	err := s.forwarder.Run(ctx)
	stopAdaptive()
	err = errors.Join(err, stopSpool())
	stopLog()
	if err != nil {
		return fmt.Errorf("stream %s: %w", s.name, err)
	}
	return nil
}

// runAdaptive looks after the stream's table until stop, which waits for it.
func (s *stream) runAdaptive(ctx context.Context) (stop func()) {
	if s.adaptive == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.adaptive.run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// spoolEnd is what a spool has to write what is left when its stream has ended.
const spoolEnd = 2 * time.Second

// runSpool runs the stream's spool until stop, which waits for it.
func (s *stream) runSpool() (stop func() error) {
	if s.spool == nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.spool.Run(ctx) }()
	return func() error {
		defer cancel()
		s.spool.Close()
		defer time.AfterFunc(spoolEnd, cancel).Stop()
		return <-done
	}
}

// discard closes the files of a stream that does not start after all.
func (s *stream) discard() error {
	s.delivery.close()
	if s.spool == nil {
		return nil
	}
	s.spool.Close()
	return s.spool.Run(context.Background())
}
