//go:build failpoints

package failpoint

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Enabled reports that the points do something in this build.
const Enabled = true

// Pass is called where the process comes by a point.
func Pass(p Point) { _ = Err(p) }

// Err is Pass at a place that can fail.
func Err(p Point) error {
	if a := armed()[p]; a != nil {
		return a.pass(p)
	}
	return nil
}

// armed is what the environment says, read at the first pass. A mistake in it ends the process: a fault that does not happen
// would prove nothing.
var armed = sync.OnceValue(func() map[Point]*action {
	all, err := parse(os.Getenv("FAILPOINTS"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAILPOINTS:", err)
		os.Exit(2)
	}
	return all
})

// action is what happens at a point.
type action struct {
	kill, fails bool
	stop, halt  bool
	delay       time.Duration
	from        int64
	on          bool // also at all passes behind from
	passes      atomic.Int64
}

// haltEvery leaves the process time to take notice of a signal before the next one.
const haltEvery = 20 * time.Millisecond

func (a *action) pass(p Point) error {
	if n := a.passes.Add(1); n < a.from || n > a.from && !a.on {
		return nil
	}
	if a.kill {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until it arrives
	}
	if a.stop {
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}
	for a.halt {
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		time.Sleep(haltEvery)
	}
	time.Sleep(a.delay)
	if a.fails {
		return fmt.Errorf("fail point %s: %w", p, syscall.EIO)
	}
	return nil
}

func parse(text string) (map[Point]*action, error) {
	all := map[Point]*action{}
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		name, what, ok := strings.Cut(part, "=")
		if !ok || !known(Point(name)) {
			return nil, fmt.Errorf("%q: no point, use POINT=ACTION with one of %v", part, Points())
		}
		a, err := parseAction(what)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", part, err)
		}
		all[Point(name)] = a
	}
	return all, nil
}

func known(p Point) bool {
	for _, other := range Points() {
		if p == other {
			return true
		}
	}
	return false
}

func parseAction(text string) (a *action, err error) {
	a = &action{from: 1}
	what, at, given := strings.Cut(text, "@")
	if given {
		at, a.on = strings.CutSuffix(at, "+")
		if a.from, err = strconv.ParseInt(at, 10, 64); err != nil || a.from < 1 {
			return nil, errors.New("@ needs the number of a pass, from 1")
		}
	}
	switch kind, value, _ := strings.Cut(what, ":"); {
	case what == "kill":
		a.kill = true
	case what == "stop":
		a.stop = true
	case what == "halt":
		a.halt = true
	case what == "error":
		a.fails = true
	case kind == "delay":
		a.delay, err = time.ParseDuration(value)
	default:
		err = errors.New("an action is kill, stop, halt, error or delay:TIME")
	}
	return a, err
}
