package plugins

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/headgate-io/headgate/plugins/meter"
	"github.com/headgate-io/headgate/sdk/abi"
)

// Module is a compiled version of a plugin, with a runtime of its own, so that versions share nothing. Chains
// that use it keep it open.
type Module struct {
	Digest       string   // "sha256:<hex>"
	Languages    []string // it was written in, as its compiler says
	Capabilities uint32   // abi.SetsKeys and so on

	host     *Host
	runtime  wazero.Runtime
	cache    wazero.CompilationCache // nil for none
	compiled wazero.CompiledModule
	refs     references
}

// Close gives the caller's module up. The last chain that uses it frees it.
func (m *Module) Close() error { return m.refs.retire() }

// build compiles what inspect made of a module that passed, and starts it once. It fills in the rest of the report and
// returns nil when that says no.
func (h *Host) build(ctx context.Context, metered []byte, l *meter.Layout, r *Report) (*Module, error) {
	m := &Module{Digest: r.Digest, Languages: r.Languages, host: h}
	m.refs.init(m.free)
	if m.compile(ctx, metered, r) && m.start(ctx, l, r) {
		r.ABI, r.Kind = abi.ExportVersion, kindOf(m.Capabilities)
		return m, nil
	}
	return nil, m.Close()
}

func runtimeConfig() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfig().WithMemoryLimitPages(hardMemory / pageSize).WithDebugInfoEnabled(false)
}

// newRuntime makes the runtime, with a cache in dir unless that is empty.
func (m *Module) newRuntime(ctx context.Context, dir string) (err error) {
	cfg := runtimeConfig()
	m.cache = nil
	if dir != "" {
		if m.cache, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
			m.cache = nil
			return err
		}
		cfg = cfg.WithCompilationCache(m.cache)
	}
	m.runtime = wazero.NewRuntimeWithConfig(ctx, cfg)
	return nil
}

// compile uses the cache when that works, and else does without.
func (m *Module) compile(ctx context.Context, metered []byte, r *Report) bool {
	dir, cacheErr := m.host.cacheOf(m.Digest, metered)
	if m.host.apart {
		return m.load(ctx, metered, dir, cacheErr, r)
	}
	if cacheErr == nil && dir.path != "" {
		if cacheErr = m.compileWith(ctx, metered, dir.path); cacheErr == nil {
			cacheErr = dir.seal()
			m.host.cacheFailed(cacheErr)
			return r.note("compile", codeCompile)
		}
		dir.clear()
	}
	if m.runtime != nil {
		m.free()
	}
	if err := m.compileWith(ctx, metered, ""); err != nil {
		return r.refuse(err)
	}
	m.host.cacheFailed(cacheErr)
	return r.note("compile", codeCompile)
}

// load takes what another process compiled.
func (m *Module) load(ctx context.Context, metered []byte, dir cacheFolder, cacheErr error, r *Report) bool {
	folder, done, err := m.host.compileFirst(ctx, metered, dir, cacheErr)
	if err == nil {
		defer done()
		if err = m.compileWith(ctx, metered, folder); err == nil && folder == dir.path {
			cacheErr = dir.seal()
		}
	}
	if err != nil {
		dir.clear()
		if _, known := errors.AsType[*refusal](err); !known {
			err = &refusal{codeCompile, err.Error()}
		}
		return r.refuse(err)
	}
	m.host.cacheFailed(cacheErr)
	return r.note("compile", codeCompile)
}

// refuse notes why a module was not compiled.
func (r *Report) refuse(err error) bool {
	var known *refusal
	code := codeMalformed
	switch {
	case errors.As(err, &known):
		code = known.code
	case errors.Is(err, errGaveUp):
		code = codeCompile
	}
	return r.note("compile", code, err.Error())
}

var errGaveUp = errors.New("the compiler gave up")

func (m *Module) compileWith(ctx context.Context, metered []byte, dir string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errGaveUp, p)
		}
	}()
	if err := m.newRuntime(ctx, dir); err != nil {
		return err
	}
	m.compiled, err = m.runtime.CompileModule(ctx, metered)
	return err
}

// start provides the imports and makes a first instance, alone, before others are made side by side.
func (m *Module) start(ctx context.Context, l *meter.Layout, r *Report) bool {
	if err := provide(ctx, m.runtime, l.Imports); err != nil {
		return r.note("init", codeInit, err.Error())
	}
	s := &surroundings{log: m.logger(m.host.log), bill: &bill{}}
	in, err := m.instantiate(ctx, s)
	if err != nil {
		return r.note("init", codeInit, err.Error()+s.lastLine())
	}
	defer in.close()
	if m.Capabilities, err = in.capabilities(); err != nil {
		return r.note("init", codeInit, firstLine(err).Error()+s.lastLine())
	}
	if unknown := m.Capabilities &^ abi.KnownCapabilities; unknown != 0 {
		return r.note("exports", codeExport, fmt.Sprintf("%s returned unknown capability bits %#x", abi.ExportVersion, unknown))
	}
	return r.note("init", codeInit)
}

// instantiate makes an instance with its regions, not configured yet.
func (m *Module) instantiate(ctx context.Context, s *surroundings) (in *instance, err error) {
	g := newGuest(s, m.host.seats)
	g.limit = m.host.cfg.InitTime
	mem := &linear{limit: uint64(m.host.cfg.MaxMemory)}
	defer func() {
		if p := recover(); p != nil { // by the runtime, when it gets no memory
			err = fmt.Errorf("start the module: %v", p)
		}
		if err != nil {
			mem.Free()
		}
	}()
	ctx = context.WithValue(experimental.WithMemoryAllocator(ctx, mem), guestKey{}, g)
	cfg := wazero.NewModuleConfig().WithName("").WithStartFunctions(abi.ExportInitialize)
	mod, err := m.runtime.InstantiateModule(ctx, m.compiled, cfg)
	g.leave()
	if err != nil {
		return nil, fmt.Errorf("start the module: %w", firstLine(err))
	}
	in = newInstance(mod, mem, g)
	if err := in.layOut(); err != nil {
		in.close()
		return nil, firstLine(err)
	}
	return in, nil
}

// slowStart reports whether making an instance takes milliseconds, so that a spare one pays.
func (m *Module) slowStart() bool { return slices.Contains(m.Languages, "Go") }

func (m *Module) logger(log *slog.Logger) *slog.Logger {
	return log.With("version", shortDigest(m.Digest))
}

func (m *Module) free() error {
	ctx := context.Background()
	var err error
	if m.runtime != nil {
		err = m.runtime.Close(ctx)
	}
	if m.cache != nil {
		if cacheErr := m.cache.Close(ctx); err == nil {
			err = cacheErr
		}
	}
	if err != nil {
		return fmt.Errorf("close plugin %s: %w", shortDigest(m.Digest), err)
	}
	return nil
}

// shortDigest is the start of a digest, enough to tell versions apart where a whole one is a burden.
func shortDigest(digest string) string {
	const length = len("sha256:") + 12
	return digest[:min(len(digest), length)]
}
