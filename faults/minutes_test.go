package faults

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/failpoint"
)

// Crashes of one data folder in a long run, before what it holds is compared with what was acknowledged. More make a cycle
// cheaper and a failure harder to read.
const perBed = 8

// patience is how long a fail point is waited for before the process is killed wherever it is.
const patience = 500 * time.Millisecond

// F1: as many kills as fit into so many minutes, or so many, at points and on backends drawn from seeds: MINUTES, CYCLES and SEED of
// make test-faults. What fails is run again with its seed: the points are the same, the moments almost.
func TestF1KillNineForMinutes(t *testing.T) {
	minutes, _ := strconv.ParseFloat(os.Getenv("FAULTS_MINUTES"), 64)
	cycles := scale(0, 0, 1)
	switch {
	case minutes <= 0 && cycles == 0:
		t.Skip("only with make test-faults MINUTES=n or CYCLES=n")
	case minutes <= 0:
		minutes = 24 * 60
	case cycles == 0:
		cycles = math.MaxInt
	}
	seed, err := strconv.ParseUint(os.Getenv("FAULTS_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().Unix())
	}
	if _, err := product(); err != nil {
		t.Fatal(err)
	}
	m := marathon{cycles: int64(cycles), end: time.Now().Add(time.Duration(minutes * float64(time.Minute))), first: seed}
	m.seed.Store(seed)
	began := time.Now()
	t.Run("beds", func(t *testing.T) {
		for range 2 { // most of a cycle is waiting: for syncs, and for processes that start and end
			t.Run("", func(t *testing.T) {
				t.Parallel()
				m.beds(t)
			})
		}
	})
	sum := total(m.runs)
	sum.What = "kill -9 for minutes, seeds " + m.seeds()
	logLine(t, sum)
	fmt.Printf("F1  kill -9, seeds %s: %s cycles in %.1f minutes, %.1f a second: sent %s, acked %s, lost %d dup %d phantom %d corrupt %d order %d  %s\n", m.seeds(),
		thousands(sum.Cycles), time.Since(began).Minutes(), float64(sum.Cycles)/time.Since(began).Seconds(), thousands(sum.Sent), thousands(sum.Acked),
		sum.Lost, sum.Dup, sum.Phantom, sum.Corrupt, sum.Order, verdict(sum.OK))
}

// marathon is a run of beds until a time.
type marathon struct {
	end   time.Time
	first uint64
	seed  atomic.Uint64 // of the next bed

	cycles int64
	begun  atomic.Int64 // cycles of all beds that have begun

	mu   sync.Mutex
	runs []result
}

func (m *marathon) seeds() string { return fmt.Sprintf("%d-%d", m.first, m.seed.Load()-1) }

func (m *marathon) beds(t *testing.T) {
	for time.Now().Before(m.end) && m.begun.Add(perBed)-perBed < m.cycles {
		seed := m.seed.Add(1) - 1
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			r := killedOften(t, seed)
			r.OK = r.account.ok() && !t.Failed()
			for _, e := range r.examples {
				t.Errorf("seed %d: %s", seed, e)
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.runs = append(m.runs, r); len(m.runs)%50 == 0 || !r.OK {
				fmt.Printf("    seed %d: %s: acked %d lost %d dup %d phantom %d corrupt %d order %d  %s\n", seed, r.What, r.Acked, r.Lost, r.Dup, r.Phantom, r.Corrupt, r.Order, verdict(r.OK))
			}
		})
	}
}

// killedOften is one bed.
func killedOften(t *testing.T, seed uint64) result {
	random := rand.New(rand.NewPCG(seed, 1))
	b := newBed(t, result{Fault: "F1", Seed: seed})
	points := killings()
	tables, cycles := random.IntN(8) == 0, perBed
	if random.IntN(2) == 1 {
		b.onNode().node.down.Store([]int32{0, 3, 9}[random.IntN(3)])
	}
	if tables {
		for _, c := range b.load.clients {
			c.makes = 3
		}
		cycles = 3 // each life has more streams to open
	}
	var at []string
	for range cycles {
		k := points[random.IntN(len(points))]
		for !tables && (k.point == failpoint.Stored || k.point == failpoint.Copied) {
			k = points[random.IntN(len(points))]
		}
		n := int(math.Exp(random.Float64() * math.Log(float64(min(k.most, 300)))))
		at = append(at, fmt.Sprintf("%s=kill@%d", k.point, n))
		b.crashBy(at[len(at)-1])
	}
	b.What = strings.Join(at, " ")
	if b.node != nil {
		b.What += fmt.Sprintf(" on a node that refuses %d of 10", b.node.down.Load())
	}
	return b.finish()
}

// crashBy has the gateway work under load until the fail point kills it, or patience ends.
func (b *bed) crashBy(at string) {
	b.t.Helper()
	g, ready := launch(b.t, b.data, at, b.settings...)
	if ready {
		b.Recover = max(b.Recover, g.recovery.Seconds())
		quit := time.AfterFunc(patience, func() { g.cmd.Process.Kill() })
		b.load.run(g.http, nil)
		quit.Stop()
	}
	if !g.died(enough) {
		b.t.Fatalf("seed %d: %s: it answers nothing and lives; log:\n%s", b.Seed, at, g.log)
	}
	b.Cycles++
}
