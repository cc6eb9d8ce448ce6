package plugins

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
)

// compileLimits are those of the process that compiles. Some modules are small, within all limits of what they declare,
// and take a compiler minutes.
type compileLimits struct {
	seconds uint64        // of CPU time
	bytes   uint64        // besides the address space that a process has at its start
	wall    time.Duration // on a machine that is busy
}

const (
	compileSeconds = 10
	compileBytes   = 2 << 30
	compileWall    = 2 * time.Minute // beside much else on few cores: a guest that takes 3 s of one has had to wait 40 s

	mostCompiled = 256 << 20 // bytes of a compiled module, which is loaded whole; a Go guest takes 4 times its module
)

// compiledOK is what the process that compiles prints when it did; else it prints why the module is refused.
const compiledOK = "ok"

// CompileModule is all that a process does which is started by Config.Compiler. Its arguments are a folder, seconds and
// bytes: it limits itself, reads what is to be compiled from in, keeps the compiled form in the folder, and writes the
// outcome to out.
func CompileModule(args []string, in io.Reader, out io.Writer) error {
	var l compileLimits
	if len(args) != 3 {
		return fmt.Errorf("%d arguments: a folder, seconds and bytes", len(args))
	}
	if _, err := fmt.Sscan(args[1]+" "+args[2], &l.seconds, &l.bytes); err != nil {
		return err
	}
	folder := args[0]
	runtime.LockOSThread() // what is limited of a thread is so of this one
	if err := limitSelf(l); err != nil {
		return fmt.Errorf("limit the compiler: %w", err)
	}
	metered, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read the module: %w", err)
	}
	outcome := compiledOK
	if err := fill(folder, metered); err != nil {
		outcome = firstLine(err).Error()
	}
	_, err = fmt.Fprintln(out, outcome)
	return err
}

// fill compiles a module into a folder.
func fill(folder string, metered []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errGaveUp, p)
		}
	}()
	ctx := context.Background()
	cache, err := wazero.NewCompilationCacheWithDir(folder)
	if err != nil {
		return err
	}
	defer cache.Close(ctx)
	rt := wazero.NewRuntimeWithConfig(ctx, runtimeConfig().WithCompilationCache(cache))
	defer rt.Close(ctx)
	_, err = rt.CompileModule(ctx, metered)
	return err
}

// refusal is why a module was not compiled.
type refusal struct{ code, detail string }

func (r *refusal) Error() string { return r.detail }

// compileApart has another process fill a folder. Only one runs at a time.
func (h *Host) compileApart(ctx context.Context, folder string, metered []byte) error {
	l := h.compileLimits
	ctx, cancel := context.WithTimeout(ctx, l.wall)
	defer cancel()
	command := append(slices.Clone(h.cfg.Compiler), folder, fmt.Sprint(l.seconds), fmt.Sprint(l.bytes))
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var out, diagnosis bytes.Buffer
	cmd.Env = []string{"GOMAXPROCS=1"} // the other cores are for events
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(metered), &out, &head{to: &diagnosis, left: 4 << 10}
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	outcome := strings.TrimSpace(out.String())
	switch {
	case err == nil && outcome == compiledOK:
		return nil
	case err == nil && strings.HasPrefix(outcome, errGaveUp.Error()):
		return &refusal{codeCompile, outcome}
	case err == nil && strings.Contains(outcome, "file too large"):
		return &refusal{codeCompileMemory, fmt.Sprintf("compiled it has more than %d MiB", mostCompiled>>20)}
	case err == nil:
		return &refusal{codeMalformed, outcome}
	}
	return h.diagnose(ctx, cmd.ProcessState, diagnosis.String(), err)
}

// diagnose says why the process that compiles came to no end.
func (h *Host) diagnose(ctx context.Context, state *os.ProcessState, diagnosis string, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &refusal{codeCompileTime, fmt.Sprintf("compiling it takes more than %s", h.compileLimits.wall)}
	case ctx.Err() != nil:
		return ctx.Err()
	case endedByCPU(state, diagnosis, h.compileLimits.seconds):
		return &refusal{codeCompileTime, fmt.Sprintf("compiling it takes more than %d s of CPU time", h.compileLimits.seconds)}
	case strings.Contains(diagnosis, "memory"):
		return &refusal{codeCompileMemory, fmt.Sprintf("compiling it takes more than %d MiB", h.compileLimits.bytes>>20)}
	}
	first, _, _ := strings.Cut(diagnosis, "\n")
	return &refusal{codeCompile, fmt.Sprintf("the compiler ended: %v: %s", err, first)}
}

// endedByCPU tells whether a process came to an end for the CPU time that it used: by SIGXCPU, of which the Go runtime tells, or
// a second later by SIGKILL. The limit is kept by the ticks of a clock, which may count twice of what the process is said to have used.
func endedByCPU(state *os.ProcessState, diagnosis string, seconds uint64) bool {
	if strings.HasPrefix(diagnosis, "SIGXCPU") {
		return true
	}
	if state == nil {
		return false
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return false
	}
	used := (state.UserTime() + state.SystemTime()).Seconds()
	return status.Signal() == syscall.SIGXCPU || status.Signal() == syscall.SIGKILL && used >= float64(seconds)/2
}

// head passes the first bytes of what is written on.
type head struct {
	to   io.Writer
	left int
}

func (h *head) Write(p []byte) (int, error) {
	n := min(len(p), h.left)
	h.left -= n
	if _, err := h.to.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// compileFirst makes sure that the compiled form is in a folder, from where it is loaded: in the cache, or when that
// does not work in one for this time. The returned function is called once it is loaded.
func (h *Host) compileFirst(ctx context.Context, metered []byte, dir cacheFolder, cacheErr error) (folder string, done func(), err error) {
	folder, done = dir.path, func() {}
	if cacheErr != nil || folder == "" {
		if folder, err = os.MkdirTemp("", "headgate-compile-"); err != nil {
			return "", done, err
		}
		done = func() { os.RemoveAll(folder) }
	}
	if filled(folder) {
		return folder, done, nil
	}
	if err = h.compileApart(ctx, folder, metered); err == nil && !filled(folder) {
		err = errors.New("the compiler left nothing behind")
	}
	if err != nil {
		done()
		return "", func() {}, err
	}
	return folder, done, nil
}

// filled reports whether there is a compiled form. cacheOf has seen that it is undamaged.
func filled(folder string) bool {
	files, err := filepath.Glob(filepath.Join(folder, "*", "*"))
	return err == nil && len(files) > 0
}
