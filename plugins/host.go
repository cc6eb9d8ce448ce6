package plugins

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
)

// Config is how plugins are run; its zero value works.
type Config struct {
	Instances int           // of each step of a chain, so many batches it works on at once; 0: min(GOMAXPROCS, 8)
	MaxModule int           // bytes of a module; 0: 8 MiB, at most 32 MiB
	MaxMemory int           // bytes of an instance's memory, whole pages of 64 KiB; 0: 64 MiB, at most 256 MiB
	Deadline  time.Duration // of a call, which has at most 256 events; 0: 100 ms, at most 10 s
	InitTime  time.Duration // of each call that sets a guest up; 0: 2 s
	Compiler  []string      // command that calls CompileModule with its last argument; empty: modules are compiled here
	Untested  bool          // the tests that modules bring are not run
	Patient   bool          // callers may make guests trap as often as they like, as in a trial
	Trust     *Trust        // whose signature an upload needs; nil: nobody's
	Cores     int           // of which guests that compute for long take all but one, or the only one; 0: nobody bounds them
	CacheDir  string        // folder for compiled modules, empty for none. They are executed unchecked: only this user may write there
}

const (
	defaultModule, hardModule = 8 << 20, 32 << 20
	defaultMemory, hardMemory = 64 << 20, 256 << 20
	mostInstances             = 8

	defaultDeadline, hardDeadline = 100 * time.Millisecond, 10 * time.Second
)

// Host loads modules and makes chains of them. It is safe for concurrent use.
type Host struct {
	cfg      Config
	log      *slog.Logger
	metrics  *metrics
	journals journals
	compile  chan struct{} // holds a token while a module is compiled: one at a time, it takes a core and much memory
	turns    turns         // of modules: one at a time fills or empties a folder of the cache
	noCache  sync.Once     // guards the log line about a cache that does not work

	seats *seats // for guests that compute for long

	compileLimits compileLimits
	apart         bool // modules are compiled by another process
	unmetered     bool // for measurements of what metering costs
}

// New checks the configuration and registers the metrics.
func New(cfg Config, log *slog.Logger, reg prometheus.Registerer) (*Host, error) {
	if cfg.Instances == 0 {
		cfg.Instances = min(runtime.GOMAXPROCS(0), mostInstances)
	}
	if cfg.MaxModule == 0 {
		cfg.MaxModule = defaultModule
	}
	if cfg.Deadline == 0 {
		cfg.Deadline = defaultDeadline
	}
	if cfg.MaxMemory == 0 {
		cfg.MaxMemory = defaultMemory
	}
	if cfg.InitTime == 0 {
		cfg.InitTime = initTime
	}
	switch {
	case cfg.Instances < 1:
		return nil, fmt.Errorf("plugins: %d instances: at least 1", cfg.Instances)
	case cfg.Deadline < time.Millisecond || cfg.Deadline > hardDeadline:
		return nil, fmt.Errorf("plugins: a deadline of %s: 1ms to %s", cfg.Deadline, hardDeadline)
	case cfg.MaxModule < 1 || cfg.MaxModule > hardModule:
		return nil, fmt.Errorf("plugins: modules of %d bytes: 1 to %d", cfg.MaxModule, hardModule)
	case cfg.MaxMemory < pageSize || cfg.MaxMemory > hardMemory || cfg.MaxMemory%pageSize != 0:
		return nil, fmt.Errorf("plugins: memory of %d bytes: whole pages of %d, at most %d", cfg.MaxMemory, pageSize, hardMemory)
	}
	m, err := newMetrics(reg)
	if err != nil {
		return nil, fmt.Errorf("plugins: register metrics: %w", err)
	}
	if !cfg.Patient {
		m.bills.limit = poisonLimit{
			traps: trapsPerSecond, replacements: replacementsPerSecond, time: time.Duration(deadlinesAtOnce * float64(cfg.Deadline)),
		}
	}
	return &Host{cfg: cfg, compileLimits: compileLimits{compileSeconds, compileBytes, compileWall}, log: log, metrics: m, journals: journals{all: map[version]*journal{}}, compile: make(chan struct{}, 1), seats: newSeats(cfg.Cores), apart: compilesApart && len(cfg.Compiler) > 0}, nil
}

// Admit makes all checks of a module that is not signed: see AdmitSigned.
func (h *Host) Admit(ctx context.Context, wasm []byte) (*Report, error) {
	return h.AdmitSigned(ctx, wasm, nil)
}

// AdmitSigned makes all checks of a module: its signature, a text of minisign or nil, is checked, and it is read, compiled
// and started once, and has to pass the tests that it brings. The module's faults are in the report; the error is only about the check itself, like an ended context.
func (h *Host) AdmitSigned(ctx context.Context, wasm, signature []byte) (*Report, error) {
	r := reportOn(wasm)
	if !r.noteSignature(h.cfg.Trust, wasm, signature) {
		return r, nil
	}
	m, report, err := h.open(ctx, wasm, r)
	if m != nil {
		if !h.cfg.Untested {
			h.noteTests(ctx, wasm, m, r)
		}
		err = m.Close()
	}
	return report, err
}

// Load compiles a module for use. A module that fails a check gives an *event.Problem with code plugin_refused. Whether
// it is signed is not asked again: see Trusted.
func (h *Host) Load(ctx context.Context, wasm []byte) (*Module, error) {
	m, report, err := h.open(ctx, wasm, reportOn(wasm))
	if err == nil && m == nil {
		err = event.Problemf(event.PluginRefused, "%s", report.Failed())
	}
	return m, err
}

// Trusted returns an *event.Problem with code plugin_refused when a stored module may not be used, because a signature is
// required and this one does not fit, or the key is not trusted any more.
func (h *Host) Trusted(wasm, signature []byte) error {
	if t := h.cfg.Trust; t != nil && t.required {
		if _, err := t.Verify(wasm, signature); err != nil {
			return event.Problemf(event.PluginRefused, "%s %v", codeSignature, err)
		}
	}
	return nil
}

// open goes on with r, and returns the module only when it passed all checks.
func (h *Host) open(ctx context.Context, wasm []byte, r *Report) (*Module, *Report, error) {
	l, metered := h.inspect(wasm, r)
	if !r.passed() {
		return nil, r, nil
	}
	done, err := h.claim(ctx, r.Digest)
	if err != nil {
		return nil, r, err
	}
	defer done()
	m, err := h.build(ctx, metered, l, r)
	return m, r, err
}

// cacheFailed logs the first error of the cache: modules are compiled anew instead.
func (h *Host) cacheFailed(err error) {
	if err != nil {
		h.noCache.Do(func() { h.log.Warn("cache of compiled plugins failed", "folder", h.cfg.CacheDir, "error", err) })
	}
}
