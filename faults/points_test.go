package faults

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/failpoint"
)

// killing says how a fail point is described, and within how many passes it strikes.
type killing struct {
	point failpoint.Point
	what  string
	most  int    // passes; few are as likely as many
	quick bool   // also in the quick form
	how   string // what it does; nothing is kill
}

func killings() []killing {
	return []killing{
		{failpoint.Accepted, "kill -9 after accept", 3000, false, ""},
		{failpoint.Decoded, "kill -9 after decode", 3000, false, ""},
		{failpoint.Transformed, "kill -9 after plugins", 3000, false, ""},
		{failpoint.Enqueued, "kill -9 after enqueue", 3000, true, ""},
		{failpoint.SpoolWrite, "kill -9 before spool write", 1000, false, ""},
		{failpoint.SpoolSync, "kill -9 before fsync", 1000, true, ""},
		{failpoint.SpoolSynced, "kill -9 after fsync", 1000, true, ""},
		{failpoint.Answer, "kill -9 before the answer", 3000, false, ""},
		{failpoint.Publish, "kill -9 before publish", 500, false, ""},
		{failpoint.Published, "kill -9 after publish", 500, true, ""},
		{failpoint.Confirmed, "kill -9 after backend ack", 500, false, ""},
		{failpoint.Cursor, "kill -9 after cursor write", 1000, false, ""},
		{failpoint.Segment, "kill -9 at segment rotation", 20, false, ""},
		{failpoint.Removed, "kill -9 after segment unlink", 15, true, ""},
		{failpoint.Stored, "kill -9 between table and its copy", 12, false, ""},
		{failpoint.Copied, "kill -9 after a table's commit", 12, false, ""},
		{failpoint.FenceBegun, "kill -9 when a fence has begun", 4, false, ""},
		{failpoint.FenceParking, "kill -9 while events are parked", 4, true, ""},
		{failpoint.FenceSealed, "kill -9 after a lane's seal", 8, true, ""},
		{failpoint.FenceCommit, "kill -9 before a fence's commit", 4, false, ""},
		{failpoint.FenceCommitted, "kill -9 after a fence's commit", 4, true, ""},
		{failpoint.FenceFollowed, "kill -9 at the end of a fence", 4, false, ""},
	}
}

// F1: the process is killed at each point of the way of an event, more than once, under load at all levels. What was
// acknowledged as durable or delivered is there, once, unchanged, in order; nothing else is but what was sent.
func TestF1KillNineAtEveryPoint(t *testing.T) {
	seeds := scale(1, 5, math.MaxInt)
	seen := map[failpoint.Point]bool{}
	for _, k := range killings() {
		seen[k.point] = true
		if !k.quick && scale(0, 1, 1) == 0 {
			continue
		}
		t.Run(string(k.point), func(t *testing.T) {
			var runs []result
			for seed := range seeds {
				runs = append(runs, record(t, k.run(t, uint64(seed))))
			}
			fmt.Println(line(runs))
		})
	}
	for _, p := range failpoint.Points() {
		if !seen[p] {
			t.Errorf("point %s is not in the table", p)
		}
	}
}

// stops are the points of a fence at which SIGTERM comes: once, or a second time before anything has gone on.
func stops() (all []killing) {
	for _, k := range killings() {
		if name, ok := strings.CutPrefix(k.what, "kill -9 "); ok && strings.HasPrefix(string(k.point), "fence.") {
			quick := k.point == failpoint.FenceSealed
			all = append(all, killing{k.point, "SIGTERM " + name, k.most, quick, "stop"}, killing{k.point, "two SIGTERMs " + name, k.most, quick, "halt"})
		}
	}
	return all
}

// F1: an orderly stop, and one that is not waited for, come at each point of a fence, with a backlog. The first ends by itself,
// with everything acknowledged delivered or in the spool; both leave nothing lost, doubled or out of order.
func TestF1StopAtEveryPointOfAFence(t *testing.T) {
	seeds := scale(1, 5, math.MaxInt)
	for _, k := range stops() {
		if !k.quick && scale(0, 1, 1) == 0 {
			continue
		}
		t.Run(string(k.point)+" "+k.how, func(t *testing.T) {
			var runs []result
			for seed := range seeds {
				runs = append(runs, record(t, k.run(t, uint64(seed))))
			}
			fmt.Println(line(runs))
		})
	}
}

// crashes of one run: the second is in the process that recovers from the first.
const crashes = 2

func (k *killing) run(t *testing.T, seed uint64) result {
	b := newBed(t, result{Fault: "F1", What: k.what, Seed: seed})
	more := ""
	if strings.HasPrefix(string(k.point), "fence.") {
		if b.fencing(); seed%2 == 1 {
			b.onNode()
		} else {
			b.load.oneOrder = true
		}
		more = ",publish=delay:15ms@1+" // so that the spool has a backlog
	} else if seed%2 == 1 { // HTTP nodes cannot tell what they have: the spool is on its own
		b.onNode().node.down.Store(3)
	}
	if k.point == failpoint.Stored || k.point == failpoint.Copied {
		for _, c := range b.load.clients {
			c.makes = 3
		}
	}
	random := rand.New(rand.NewPCG(seed, uint64(k.most)))
	most := min(k.most, scale(50, k.most, 1))
	for range crashes {
		b.crash(fmt.Sprintf("%s=%s@%d%s", k.point, cmp.Or(k.how, "kill"), int(math.Exp(random.Float64()*math.Log(float64(most)))), more))
	}
	return b.finish()
}

// crash has the gateway work under load until the fail point kills it.
func (b *bed) crash(at string) {
	b.t.Helper()
	g, ready := launch(b.t, b.data, at, b.settings...)
	if ready {
		quit := time.AfterFunc(2*time.Minute, func() { g.cmd.Process.Kill() })
		b.load.run(g.http, nil)
		if !quit.Stop() && os.Getenv("FAULTS") != "" { // the quick form may run on a slow machine, and a kill at another moment is one, too
			b.t.Errorf("seed %d: %s was not reached in two minutes", b.Seed, at)
		}
	}
	if !g.died(enough) {
		b.t.Fatalf("seed %d: %s: it answers nothing and lives; log:\n%s", b.Seed, at, g.log)
	}
	b.Cycles++
	if state := g.cmd.ProcessState; ready && strings.Contains(at, "=stop@") && state.ExitCode() != 0 && strings.Contains(g.log.String(), "draining") {
		b.t.Errorf("seed %d: %s: it ended with %v; log:\n%s", b.Seed, at, state, g.log)
	}
}

// F1: kill -9 once a second, with nobody choosing the moment, while a million events and more are posted.
func TestF1KillNineEverySecond(t *testing.T) {
	long(t)
	const kills = 60
	b := newBed(t, result{Fault: "F1", What: "kill -9 every second"}).with("spool.max_bytes=1GiB")
	b.load = newLoad(0, 6, 300)
	b.load.again = true
	for range kills {
		g := start(t, b.data, "", b.settings...)
		b.Recover = max(b.Recover, g.recovery.Seconds())
		over := make(chan struct{})
		go func() { b.load.run(g.http, nil); close(over) }()
		<-time.After(time.Second)
		g.kill()
		<-over
		b.Cycles++
	}
	r := record(t, b.finish())
	fmt.Println(line([]result{r}))
	if r.Sent < 1_000_000 {
		t.Errorf("%d events were posted, a million was the idea", r.Sent)
	}
}
