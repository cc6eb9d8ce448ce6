package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/control"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/gateway/datafolder"
	"github.com/headgate-io/headgate/ingest"
	"github.com/headgate-io/headgate/internal/auth"
	"github.com/headgate-io/headgate/internal/budget"
	"github.com/headgate-io/headgate/internal/certs"
	"github.com/headgate-io/headgate/internal/journal"
	"github.com/headgate-io/headgate/internal/window"
	"github.com/headgate-io/headgate/plugins"
)

// Deps are what a Gateway uses and others own.
type Deps struct {
	Log      *slog.Logger
	Build    admin.Build
	Compiler []string  // command that calls plugins.CompileModule with its last arguments; empty: modules are compiled here
	Out      io.Writer // gets the commands to try, once ready; nil: nobody
}

// Gateway is one running product.
type Gateway struct {
	cfg  config.Config
	deps Deps
	log  *slog.Logger

	metrics *prometheus.Registry
	rates   rateMetrics
	tokens  *auth.Tokens   // nil: everybody may do everything
	bodies  *budget.Budget // bytes of request bodies
	health  health

	outbound
	deadLetters
	parts
	streamSet
	lifecycle
}

// outbound is what the streams share on the way from Accept to their backends.
type outbound struct {
	lanes          *budget.Budget // bytes in all lanes but those of dead letters
	letters        *budget.Budget // bytes in these, so that full lanes can't keep each other from getting rid of an event
	presses        *forward.Presses
	space          *spool.Space // of all spools
	forwardMetrics *forward.Metrics
}

// deadLetters is what the streams share of their dead letters.
type deadLetters struct {
	deadLettered *prometheus.CounterVec
	replayed     *prometheus.CounterVec
	replays      replays    // of letters
	burying      sync.Mutex // one dead letter is made at a time; nothing else is waited for while it is held
	buried       bool       // no more are made; guarded by burying
}

// parts is what open makes and close releases; while the gateway serves nobody changes it.
type parts struct {
	folder     *datafolder.Folder
	stores     *stores
	store      *control.Store
	host       *plugins.Host
	ingest     *ingest.Server
	admin      *admin.Server
	keys       *window.Keys     // the answers by idempotency key
	owners     window.Secret    // keys who owns what is remembered
	keyLog     *journal.Journal // of these answers
	sessionLog *journal.Journal // of the sessions over QUIC; nil without
	certs      *certs.Keeper    // nil: there is no listener with TLS
	addresses
	unclean    bool     // the process before did not stop in order: ids are recalled as streams are opened
	spoolsGone sync.Map // by stream: its spool was removed before the start
}

// streamSet is which streams there are.
type streamSet struct {
	steering turn        // one change of streams or plugins at a time
	unmade   *definition // of streams that a request may make
	streams  atomic.Pointer[map[string]*stream]
	broken   sync.Map // name of a stream -> *brokenStream
}

// lifecycle is how far the gateway is between its start and its end.
type lifecycle struct {
	accepting atomic.Bool
	stopping  atomic.Bool     // for good
	delivery  context.Context // of the streams; its end is the hard stop
	giveUp    context.CancelFunc
	running   sync.WaitGroup
	failures  failures
}

// New checks the configuration. Nothing runs and nothing is opened yet.
func New(cfg config.Config, deps Deps) (*Gateway, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	usual, err := define(config.Stream{}.WithDefaults(), 0, managedByAPI)
	if err != nil {
		return nil, err
	}
	usual.settings.Unmade = true
	g := &Gateway{
		cfg: cfg, deps: deps, log: deps.Log, metrics: newRegistry(deps.Build), outbound: outbound{presses: forward.NewPresses(0)},
		streamSet: streamSet{steering: newTurn(), unmade: usual},
	}
	g.deadLettered, g.replayed, g.rates = newDeadLettered(g.metrics), newReplayed(g.metrics), newRateMetrics(g.metrics)
	g.metrics.MustRegister(newSuspendedMetric(g), newIDMetrics(g), newFilterMetrics(g), newStoredMetrics(g), spoolMetrics{g}, storeMetrics{g})
	if err := g.fitsMemory(); err != nil {
		return nil, err
	}
	g.metrics.MustRegister(tableMetrics{g})
	if g.tokens, err = cfg.Tokens(); err != nil {
		return nil, err
	}
	// Half of the memory for requests that are being read, an eighth for dead letters, the rest for what waits in lanes.
	g.bodies, g.letters, g.lanes = budget.New(int64(cfg.Memory)/2), budget.New(int64(cfg.Memory)/8), budget.New(int64(cfg.Memory)/8*3)
	g.health = health{now: time.Now, known: map[string]admin.Dependency{}}
	g.streams.Store(&map[string]*stream{})
	return g, nil
}

// Run starts everything, serves until ctx ends, and stops in the order of the data path. It is called once.
func (g *Gateway) Run(ctx context.Context) error {
	defer g.close()
	if err := errors.Join(g.open(ctx), ctx.Err()); err != nil {
		return err
	}
	serving, interrupt := context.WithCancel(ctx)
	defer interrupt()
	group := context.WithoutCancel(ctx)
	g.running.Go(func() { g.failures.add(g.ingest.Run(group)); interrupt() })
	adminDone := make(chan struct{})
	go func() { defer close(adminDone); g.failures.add(g.admin.Run(group)); interrupt() }()

	keeping, rest := context.WithCancel(group)
	var keepers sync.WaitGroup
	for name, b := range g.stores.buses {
		b.back.Store(new(func() { g.recheck(name) }))
		keepers.Go(func() { b.keeper.Run(keeping) })
	}
	for _, server := range g.stores.servers() {
		keepers.Go(func() { g.gone(server.Run(keeping), interrupt) })
	}
	keepers.Go(func() { g.folder.KeepReserve(keeping, g.log) })
	if g.certs != nil {
		keepers.Go(func() { g.certs.Run(keeping) })
	}

	stopKeyLog := runJournal(g.keyLog)
	defer stopKeyLog()
	stopSessionLog := runJournal(g.sessionLog)
	defer stopSessionLog()
	keepers.Go(func() {
		g.gone(g.folder.Watch(keeping, g.spools), interrupt)
	})

	g.accepting.Store(true)
	if err := g.announce(); err != nil {
		g.failures.add(err)
		interrupt()
	}
	<-serving.Done()
	g.stop()
	<-adminDone
	rest()
	keepers.Wait()
	g.noteStop()
	return g.failures.err()
}

// gone stops the gateway when err says that its folder is.
func (g *Gateway) gone(err error, interrupt func()) {
	if err == nil {
		return
	}
	g.stopping.Store(true)
	g.accepting.Store(false) // at once: nothing more is to be acknowledged
	g.log.Error("THE DATA FOLDER IS GONE, the gateway stops", "error", err)
	g.failures.add(err)
	interrupt()
}

// failures collects why a part ended, from any goroutine.
type failures struct {
	mu  sync.Mutex
	all []error
}

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, err)
}

func (f *failures) list() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.all)
}

func (f *failures) err() error { return errors.Join(f.list()...) }
