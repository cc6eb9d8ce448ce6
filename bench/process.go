package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a program under the harness; it is asked to end with SIGTERM, and killed when it does not.
type process struct {
	cmd     *exec.Cmd
	log     *bytes.Buffer // its standard error; read it when ended is closed
	ended   chan struct{}
	err     error // how it ended; valid when ended is closed
	address string
}

const patience = 30 * time.Second // for a program to begin, to end, and for events to come through

// start runs a program until stop; out takes its standard output.
func start(ctx context.Context, out io.Writer, name string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, name, args...), log: new(bytes.Buffer), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, p.log
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = patience
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(name), err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// startRole runs this program in another role, and waits for the address that it prints first.
func startRole(ctx context.Context, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	read, write := io.Pipe()
	p, err := start(ctx, write, self, args...)
	if err != nil {
		return nil, err
	}
	go func() {
		<-p.ended
		write.Close()
	}()
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		<-p.ended
		return nil, p.failure()
	}
	p.address = strings.TrimSpace(line)
	return p, nil
}

// failure describes a process that ended when it should not have.
func (p *process) failure() error {
	log := p.log.Bytes()
	return fmt.Errorf("%s ended: %v\n%s", strings.Join(p.cmd.Args[1:], " "), p.err, log[max(0, len(log)-4000):])
}

// stop ends the process and waits for it.
func (p *process) stop() {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.cmd.Process.Kill()
		<-p.ended
	}
}

// wait polls until done says so, the process ends, or patience does.
func (p *process) wait(ctx context.Context, what string, done func() (bool, error)) error {
	for deadline := time.Now().Add(patience); ; {
		ok, err := done()
		switch {
		case ok || err != nil:
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("waited %v in vain: %s", patience, what)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-p.ended:
			return p.failure()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ticksPerSecond is USER_HZ, the unit of times in /proc/PID/stat: 100 on every Linux that Go runs on.
const ticksPerSecond = 100

// cpu is the user and system time of the process so far, in seconds.
func (p *process) cpu() (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	return parseCPU(string(stat))
}

// parseCPU reads the fields utime and stime, the 12th and 13th behind the program's name in parentheses (proc_pid_stat(5)).
func parseCPU(stat string) (float64, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, errors.New("/proc/PID/stat has too few fields")
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return float64(user+system) / ticksPerSecond, errors.Join(err1, err2)
}

// idleCPU waits until the process has used no CPU time for a while, and returns what it has used until then.
func (p *process) idleCPU(ctx context.Context) (used float64, err error) {
	calm := 0
	return used, p.wait(ctx, "the process does not become idle", func() (bool, error) {
		now, err := p.cpu()
		if calm++; now > used {
			used, calm = now, 0
		}
		return calm >= 10, err
	})
}

// peakMemory is VmHWM of the process, in bytes.
func (p *process) peakMemory() (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	size, _, _ := strings.Cut(strings.TrimSpace(rest), " kB")
	n, err := strconv.Atoi(size)
	return n << 10, err
}

func get(ctx context.Context, url string) ([]byte, error) { return call(ctx, http.MethodGet, url) }

// call makes a request without a body and returns the answer's.
func call(ctx context.Context, method, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, resp.Status, text)
	}
	return text, err
}
