package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
	"github.com/headgate-io/headgate/internal/memdisk"
	"github.com/headgate-io/headgate/partitioner"
)

// A fenceWorld is one gateway's stream under faults, on a virtual clock: the production table, planner's steps, fence, lanes,
// spool and JetStream chain, between producers, a disk, a control store and a server that are models. All that happens is
// drawn from the seed, by the name of what happens and how often it has, so that it hardly depends on who runs first.
type fenceWorld struct {
	seed     uint64
	without  ablation
	presses  *forward.Presses
	began    time.Time
	calm     atomic.Bool      // faults have stopped
	crashIn  atomic.Int64     // steps until the process crashes
	crashes  int              // left
	cut      atomic.Bool      // one of them was a power cut
	external bool             // what a process has sent arrives although it has gone
	dark     [2]time.Duration // the server and the store answer nothing from the one to the other
	server   *fenceServer
	store    *fenceStore
	up       atomic.Pointer[fenceProcess]
	late     sync.WaitGroup // what is on its way though nobody waits for it
	fenced   atomic.Int64   // fences that ended

	mu         sync.Mutex
	drawn      map[string]uint64
	trace      []string
	fates      map[string]fate // by what the event is
	history    handedOver
	refused    string // why no order of what producers did explains what a reader saw
	planned    bool   // the production planner decides what changes
	complaints []string

	fixed fenceScript // what is not drawn
	did   fenceScript // what has happened: its crashes and its rival
}

// What a world is made of.
const (
	fencePartitions = 5
	fenceKeys       = 3
	fenceSources    = 4
	faultTime       = 10 * time.Second // then nothing fails any more, and
	quietTime       = 2 * time.Second  // later producers end
	stuckTime       = 90 * time.Second // what takes longer from then on is stuck
)

var fenceSecret = partitioner.Secret{7}

// fate is what the producer of an event knows of it.
type fate struct {
	state   string // waits, acked, rejected, unknown
	level   event.Level
	process *fenceProcess
}

// draw returns random numbers for one thing that happens.
func (w *fenceWorld) draw(name string) *rand.Rand {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drawn[name]++
	h := fnv.New64a()
	fmt.Fprint(h, name, w.drawn[name])
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

func (w *fenceWorld) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, fmt.Sprintf("%7.3fs ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

func (w *fenceWorld) complain(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.complaints = append(w.complaints, fmt.Sprintf(format, args...))
}

// delay is how long something takes: mostly next to nothing.
func (w *fenceWorld) delay(r *rand.Rand) time.Duration {
	d := time.Duration(r.ExpFloat64() * float64(time.Millisecond))
	if w.calm.Load() {
		return d
	}
	switch r.IntN(40) {
	case 0:
		d += time.Duration(r.Int64N(int64(4 * time.Second)))
	case 1, 2, 3:
		d += time.Duration(r.Int64N(int64(300 * time.Millisecond)))
	}
	return d
}

// isDark tells that the server and the store answer nothing now.
func (w *fenceWorld) isDark() bool {
	now := time.Since(w.began)
	return !w.calm.Load() && now >= w.dark[0] && now < w.dark[1]
}

// fenceProcess is one life of the gateway.
type fenceProcess struct {
	w       *fenceWorld
	number  int
	s       *stream
	a       *adaptive
	disk    *memdisk.Memory
	left    *memdisk.Memory // what it left, once gone is closed
	dying   atomic.Bool
	ended   bool // left is set; the disk's lock guards it
	dead    atomic.Bool
	gone    chan struct{}
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	stopped error // of the forwarder
}

// step is a moment at which the process may crash.
func (p *fenceProcess) step(what string) {
	if !p.w.calm.Load() && p.w.crashIn.Add(-1) == 0 {
		p.w.say("#%d CRASH at %s", p.number, what)
		p.dying.Store(true)
		_ = p.disk.Remove("anything") // the disk takes its picture
	}
}

// onDisk is asked before each operation of the disk; it is the only one that may take its picture.
func (p *fenceProcess) onDisk(int) error {
	if p.ended {
		return memdisk.ErrDisk
	}
	if !p.dying.Load() && (p.w.calm.Load() || p.w.crashIn.Add(-1) != 0) {
		return nil
	}
	r := p.w.draw("crash")
	how := "killed"
	if r.IntN(2) == 0 {
		p.left = p.disk.Kill()
	} else {
		how, p.left = "cut off its power", p.disk.PowerCut(r.IntN)
		p.w.cut.Store(true)
	}
	p.ended = true
	p.dead.Store(true)
	p.w.say("#%d is %s", p.number, how)
	close(p.gone)
	p.cancel()
	return memdisk.ErrDisk
}

// rest waits, and reports false when the process has gone.
func (p *fenceProcess) rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-p.gone:
	}
	return !p.isGone()
}

func (p *fenceProcess) isGone() bool {
	return p.dead.Load()
}

// runFence runs a world of a seed to its end.
func runFence(t *testing.T, seed uint64, without ablation, presses *forward.Presses) *fenceWorld {
	return runFenceBy(t, seed, without, presses, drawn)
}

// fenceMode says who decides what changes.
type fenceMode bool

const (
	drawn   fenceMode = false // chance
	planned fenceMode = true  // the production planner
)

func runFenceBy(t *testing.T, seed uint64, without ablation, presses *forward.Presses, mode fenceMode) *fenceWorld {
	w := &fenceWorld{seed: seed, without: without, presses: presses, planned: mode == planned}
	return w.runToItsEnd(t)
}

// runFenceScript runs the world of a script.
func runFenceScript(t *testing.T, f *fenceScript, presses *forward.Presses) *fenceWorld {
	w := &fenceWorld{seed: f.seed, presses: presses, fixed: *f, planned: f.planned != nil && *f.planned || f.planned == nil && f.seed%3 == 1}
	return w.runToItsEnd(t)
}

func (w *fenceWorld) runToItsEnd(t *testing.T) *fenceWorld {
	w.drawn, w.fates = map[string]uint64{}, map[string]fate{}
	synctest.Test(t, func(*testing.T) {
		w.began = time.Now()
		w.history.began = w.began
		w.server, w.store = newFenceServer(w), newFenceStore(w)
		w.run()
	})
	w.check()
	return w
}

func (w *fenceWorld) run() {
	r := w.draw("world")
	w.crashes = r.IntN(4)
	w.external = r.IntN(2) == 0 || w.without == claim || os.Getenv("FENCE_EXTERNAL") != ""
	if r.IntN(2) == 0 {
		w.dark[0] = time.Duration(r.Int64N(int64(faultTime)))
		w.dark[1] = w.dark[0] + time.Duration(r.Int64N(int64(9*time.Second)))
	}
	rival := r.IntN(3) == 0 || w.planned && r.IntN(2) == 0
	w.fix(&rival)
	ctx, end := context.WithCancel(context.Background())
	var producers, others sync.WaitGroup
	others.Go(func() { w.live(ctx) })
	if rival {
		others.Go(func() { w.rival(ctx) })
	}
	for s := range fenceSources {
		producers.Go(func() { w.produce(s) })
	}
	<-time.After(faultTime)
	w.say("no faults from here on")
	w.calm.Store(true)
	<-time.After(quietTime)
	done := make(chan struct{})
	go func() { producers.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(stuckTime):
		w.complain("producers wait for ever")
	}
	end()
	others.Wait()
	<-done
	w.late.Wait()
}

// fix replaces what was drawn by what the script says.
func (w *fenceWorld) fix(rival *bool) {
	if w.fixed.external != nil {
		w.external = *w.fixed.external
	}
	if w.fixed.dark != nil {
		w.dark = *w.fixed.dark
	}
	if w.fixed.crashes != nil {
		w.crashes = len(w.fixed.crashes)
	}
	if w.fixed.rival != nil {
		*rival = *w.fixed.rival
	}
	w.did.rival = rival
}

// live runs process after process, until ctx ends; the last one ends well.
func (w *fenceWorld) live(ctx context.Context) {
	disk := memdisk.New()
	for n := 1; ; n++ {
		r := w.draw("life")
		w.crashIn.Store(0)
		if w.crashes > 0 {
			w.crashes--
			at := 1 + r.Int64N(1<<(5+r.IntN(7)))
			if w.fixed.crashes != nil {
				at = w.fixed.crashes[len(w.did.crashes)]
			}
			w.did.crashes = append(w.did.crashes, at)
			w.crashIn.Store(at)
		}
		p := w.start(n, disk)
		select {
		case <-p.gone:
			disk = p.left
			p.running.Wait()
			<-time.After(time.Duration(r.Int64N(int64(time.Second))))
		case <-ctx.Done():
			p.finish()
			return
		}
	}
}

// finish has the process deliver all that it has.
func (p *fenceProcess) finish() {
	for range 100 {
		if !p.s.partitioner.Table().UnderWay() && p.s.forwarder.Inherited() == 0 {
			break
		}
		<-time.After(stuckTime / 100)
	}
	if t := p.s.partitioner.Table(); t.UnderWay() {
		p.w.complain("%v is under way for ever", t)
	}
	p.s.forwarder.Close()
	<-time.After(stuckTime)
	for n, l := range p.s.forwarder.LaneLoads(nil) {
		if l.Waiting+l.Inflight > 0 {
			p.w.complain("lane %d is stuck with %d events: %s", n, l.Waiting+l.Inflight, l.Trouble)
		}
	}
	p.cancel()
	p.running.Wait()
}

// rival is a second controller: it begins changes and abandons what it finds, as the first one would, and has no lanes.
func (w *fenceWorld) rival(ctx context.Context) {
	for !w.calm.Load() && ctx.Err() == nil {
		r := w.draw("rival")
		<-time.After(time.Duration(r.Int64N(int64(3 * time.Second))))
		doc, revision := w.store.readStale(r)
		t, err := partitioner.ParseTable(fenceSecret, doc)
		if err != nil {
			w.complain("the store has %v", err)
			return
		}
		if t.UnderWay() {
			t, err = t.Abandon()
		} else if plan, ok := w.rivalPlan(r, t); ok {
			t, err = t.Begin(plan)
		} else {
			continue
		}
		if err != nil {
			w.complain("rival: %v", err)
			return
		}
		<-time.After(w.delay(r))
		next, _ := json.Marshal(t)
		_, err = w.store.write(next, revision)
		w.say("rival: %v: %v", t, err)
	}
}

// String is what a stranger needs: the file of it, what is wrong, and how it came to that.
func (w *fenceWorld) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "as a file of testdata/fences:\n%s", w.script())
	for n, c := range w.complaints {
		if n == 10 {
			fmt.Fprintf(&b, "\n  and %d more", len(w.complaints)-n)
			break
		}
		fmt.Fprintf(&b, "\n  %s", c)
	}
	from := max(0, len(w.trace)-250)
	fmt.Fprintf(&b, "\n%s", strings.Join(w.trace[from:], "\n"))
	return b.String()
}

// logger puts what an operator would be alarmed by into the trace.
func (w *fenceWorld) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(traceWriter{w}, &slog.HandlerOptions{Level: slog.LevelError, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

type traceWriter struct{ w *fenceWorld }

func (t traceWriter) Write(line []byte) (int, error) {
	t.w.say("%s", strings.TrimSpace(string(line)))
	return len(line), nil
}

const fenceStream, fenceGateway = forwardtest.Stream, forwardtest.Gateway
