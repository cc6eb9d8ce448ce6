package forward

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/internal/budget"
	"github.com/headgate-io/headgate/internal/compress"
)

// Config describes the forwarder of one stream. Zero values mean what the comments say.
type Config struct {
	Stream      string // name, needed
	Gateway     string // id of this gateway, needed
	BackendName string // as in the configuration, a label in the metrics; "default"
	Partitions  int    // lanes, 1 to 256; needed
	Codec       string // a name that internal/compress knows; zstd

	LingerWaiting time.Duration // age at which events are sealed when a request waits for them; 1 ms
	LingerIdle    time.Duration // age at which others are sealed; 50 ms
	FrameBytes    int           // most bytes of a frame before compression, a single larger event aside; 512 KiB
	FrameEvents   int           // most events of a frame; 10,000
	MaxRun        int           // most bytes of a run, a single larger frame aside; FrameBytes
	SendTimeout   time.Duration // after which a call of the backend counts as failed; 30 s
}

// Deps is what a forwarder shares with others.
type Deps struct {
	Budget     *budget.Budget // bytes in the lanes; 64 MiB of its own when nil
	Log        *slog.Logger   // nothing is logged when nil
	Metrics    *Metrics       // not exported when nil
	Presses    *Presses       // what seals frames; NewPresses(0) of its own when nil
	DeadLetter DeadLetter     // nil: events that the backend refuses for good are dropped, and their requests told

	// Spool makes events durable before the backend has them; nil: durable is what the backend confirms. It must run
	// for longer than the forwarder. Backlog says what it has of a lane at the start, Room why it takes no more: an
	// *event.Problem, or nil.
	Spool   Spool
	Backlog func(partition int32) spool.Backlog
	Room    func() error
	// Alarm returns what calls on time within a millisecond; nil: a timer of the runtime, which is late while there is nothing else to do.
	Alarm func(call func()) Alarm

	// Again reads frames of the spool that are confirmed, for a backend that has lost them; nil: none are kept. Check returns a
	// *LostError when the backend has less of a lane than it had confirmed, to this process or up to a number; nil: nobody can ask it.
	Again func(partition int32, after uint64, f *spool.Frame) (ok bool, err error)
	Check func(ctx context.Context, partition int32, confirmed uint64) error
	// Lost is called when events are found lost that were delivered, before any more is said of it; nil: nobody is told.
	Lost func()
	// Reserve returns a number from last on, up to which numbers may be given that no later process gives: so a lane can go
	// on while the backend, which knows where it ended, is away. It needs a spool. nil: it waits for the backend.
	Reserve func(partition int32, last uint64) (bound uint64, err error)
}

const (
	maxPartitions = 256
	defaultBudget = 64 << 20
)

// Forwarder takes the events of one stream to its backend.
type Forwarder struct {
	cfg        Config
	backend    Backend
	deadLetter DeadLetter // nil for none
	spool      Spool      // nil for none
	room       func() error
	again      func(partition int32, after uint64, f *spool.Frame) (ok bool, err error)
	check      func(ctx context.Context, partition int32, confirmed uint64) error
	onLost     func()                                                       // nil for nobody
	reserved   func(partition int32, last uint64) (bound uint64, err error) // nil: numbers are not reserved
	codec      *compress.Codec
	budget     *budget.Budget
	presses    *Presses
	log        *slog.Logger
	metrics    *Metrics
	lanes      []*lane
	round      *round // nil without a spool

	gate   sync.RWMutex // held for reading by a Forward, so that none is under way when the forwarder closes
	closed bool         // guarded by gate
}

// New checks the configuration and returns a forwarder, which takes events from now on and sends them when it runs.
func New(cfg Config, backend Backend, deps Deps) (*Forwarder, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("forward stream %q: %w", cfg.Stream, err)
	}
	cfg.setDefaults()
	codec, err := compress.ByName(cfg.Codec)
	if err != nil {
		return nil, fmt.Errorf("forward stream %q: %w", cfg.Stream, err)
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Budget == nil {
		deps.Budget = budget.New(defaultBudget)
	}
	if deps.Presses == nil {
		deps.Presses = NewPresses(0)
	}
	if deps.Metrics == nil {
		deps.Metrics = newMetrics()
	}
	f := &Forwarder{
		cfg: cfg, backend: backend, deadLetter: deps.DeadLetter, codec: codec, budget: deps.Budget, presses: deps.Presses,
		log: deps.Log.With("stream", cfg.Stream), metrics: deps.Metrics, spool: deps.Spool, room: deps.Room, again: deps.Again, check: deps.Check,
		reserved: deps.Reserve, onLost: deps.Lost,
	}
	if deps.Spool != nil {
		f.round = newRound(deps.Spool, cfg.LingerWaiting, deps.Alarm)
	}
	for p := range cfg.Partitions {
		f.lanes = append(f.lanes, newLane(f, int32(p)))
		if deps.Spool != nil {
			f.lanes[p].inherit(deps.Backlog(int32(p)))
		}
	}
	f.metrics.watch(f)
	return f, nil
}

func (c *Config) check() error {
	switch {
	case c.Stream == "" || c.Gateway == "":
		return errors.New("stream and gateway need a name")
	case c.Partitions < 1 || c.Partitions > maxPartitions:
		return fmt.Errorf("%d partitions: must be 1 to %d", c.Partitions, maxPartitions)
	case min(c.LingerWaiting, c.LingerIdle, c.SendTimeout) < 0 || min(c.FrameBytes, c.FrameEvents, c.MaxRun) < 0:
		return errors.New("a limit below zero")
	}
	return nil
}

func (c *Config) setDefaults() {
	orDefault(&c.BackendName, "default")
	orDefault(&c.Codec, "zstd")
	orDefault(&c.LingerWaiting, time.Millisecond)
	orDefault(&c.LingerIdle, 50*time.Millisecond)
	orDefault(&c.FrameBytes, 512<<10)
	orDefault(&c.FrameEvents, 10_000)
	orDefault(&c.MaxRun, c.FrameBytes)
	orDefault(&c.SendTimeout, 30*time.Second)
}

func orDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// Run seals and sends what is forwarded, until the forwarder is closed and everything is confirmed, or is in the spool
// while the backend takes nothing: then it returns nil. When ctx ends before that, it gives up: requests that still wait
// learn that what is stored is unknown, and the error says how many events that concerns, if any. It is called once.
func (f *Forwarder) Run(ctx context.Context) error {
	var lanes sync.WaitGroup
	for _, l := range f.lanes {
		lanes.Go(func() { l.sealFrames(ctx) })
		lanes.Go(func() { l.sendAll(ctx) })
	}
	lanes.Wait()
	if f.round != nil {
		defer f.round.close()
	}
	if ctx.Err() == nil && f.spool == nil {
		return nil
	}
	f.shut()
	events := 0
	trouble, _ := f.Trouble()
	for _, l := range f.lanes {
		events += l.abandon()
	}
	if events == 0 {
		return nil
	}
	return &UndeliveredError{Stream: f.cfg.Stream, Backend: f.cfg.BackendName, Events: events, Trouble: trouble, Cause: ctx.Err()}
}

// UndeliveredError says what a hard stop has given up on.
type UndeliveredError struct {
	Stream, Backend string
	Events          int
	Trouble         event.Code // why the backend took nothing in the end, "" when it only was slow
	Cause           error
}

// Error says how many events are concerned, and what is known of them.
func (e *UndeliveredError) Error() string {
	why := "did not confirm them in time"
	if e.Trouble != "" {
		why = "takes nothing (" + string(e.Trouble) + ")"
	}
	return fmt.Sprintf("%d events are given up, because backend %s %s: those acknowledged as accepted may be lost, "+
		"requests for durable were answered 503 with stored unknown", e.Events, e.Backend, why)
}

// Unwrap returns why it was stopped.
func (e *UndeliveredError) Unwrap() error { return e.Cause }

// Close makes Forward refuse and Run drain. It may be called twice; it doesn't wait, Run does.
func (f *Forwarder) Close() {
	f.shut()
	for _, l := range f.lanes {
		l.close()
	}
}

// shut returns when no Forward is under way and none will take anything.
func (f *Forwarder) shut() {
	f.gate.Lock()
	defer f.gate.Unlock()
	f.closed = true
}
