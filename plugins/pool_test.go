package plugins

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/leaks"
)

func TestNoInstanceBecomesFree(t *testing.T) {
	h := hostOf(t, Config{Instances: 1})
	c := chainOf(t, h, Step{Name: "idle", Module: loadOf(t, h, idle().bytes())})
	in, err := c.places[0].active.pool.take(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err = c.Process(ctx, batchOf("a"))
	var p *event.Problem
	if !errors.As(err, &p) || p.Code != event.Overloaded {
		t.Errorf("error %v", err)
	}
	c.places[0].active.pool.give(in)
	if err := c.Process(ctx, batchOf("a")); err != nil {
		t.Errorf("a free instance is there, and ctx has ended: %v", err)
	}
}

func TestSpareTakesOver(t *testing.T) {
	m := scripted(false)
	m.custom = "Go"
	h := hostOf(t, Config{Instances: 1})
	c := chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, m.bytes())})
	pool := c.places[0].active.pool
	if len(pool.spare) != 1 {
		t.Fatal("no spare for a Go guest")
	}
	for range 20 {
		b := batchOf("t", "ka")
		process(t, c, b)
		if got := outcomes(b); got != "rejected plugin_failed\naccepted key=a\n" {
			t.Fatalf("got %s", got)
		}
	}
	pool.refills.Wait()
	if len(pool.spare) != 1 {
		t.Error("the spare was not made again")
	}
}

// Case L12 in small: chains are swapped while batches run. Each batch is processed by exactly one of them, and
// says by which.
func TestL12Swap(t *testing.T) {
	defer leaks.None(t)
	h := hostOf(t, Config{Instances: 2})
	versions := [2]*Module{loadOf(t, h, scripted(false).bytes()), loadOf(t, h, scripted(true).bytes())}
	var active atomic.Pointer[Chain]
	next := func(i int) *Chain {
		c, err := h.NewChain(context.Background(), []Step{{Name: "scripted", Module: versions[i%2]}}, Rules{})
		if err != nil {
			t.Error(err)
		}
		return c
	}
	active.Store(next(0))
	var stop atomic.Bool
	var batches atomic.Int64
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for !stop.Load() {
				c := active.Load()
				if !c.Acquire() {
					continue // swapped in between: another one is in force
				}
				b := batchOf("ka", "d", "t", "kb")
				err := c.Process(context.Background(), b)
				if got := outcomes(b); err != nil || got != "accepted key=a\nfiltered\nrejected plugin_failed\naccepted key=b\n" || b.Chain != c.Digest() {
					t.Errorf("%v %s by %s", err, got, b.Chain)
					stop.Store(true)
				}
				closed(t, c.Release())
				batches.Add(1)
			}
		})
	}
	for i := range 50 {
		before := batches.Load()
		closed(t, active.Swap(next(i+1)).Retire())
		for batches.Load() == before && !stop.Load() {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	senders.Wait()
	last := active.Load()
	closed(t, last.Retire())
	closed(t, last.Retire())
	if last.Acquire() {
		t.Error("a freed chain is taken")
	}
}

// Case L21: what closed versions held is freed: their memory maps are gone.
func TestL21ClosedVersionsHoldNothing(t *testing.T) {
	maps := func() int {
		text, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Skip("no /proc: ", err)
		}
		return strings.Count(string(text), "\n")
	}
	h := hostOf(t, Config{Instances: 4})
	use := func(i int) {
		m := scripted(false)
		m.custom = strconv.Itoa(i) // another digest each
		mod, err := h.Load(context.Background(), m.bytes())
		if err != nil {
			t.Fatal(err)
		}
		c, err := h.NewChain(context.Background(), []Step{{Name: "scripted", Module: mod}}, Rules{})
		if err != nil {
			t.Fatal(err)
		}
		closed(t, mod.Close()) // the chain keeps it open
		b := batchOf("ka", "t", "m", "kb")
		process(t, c, b)
		if b.Counts().Accepted != 2 {
			t.Errorf("got %s", outcomes(b))
		}
		closed(t, c.Retire())
	}
	for i := range 5 {
		use(i)
	}
	before := maps()
	for i := range 100 {
		use(i + 5)
	}
	if after := maps(); after > before+20 {
		t.Errorf("%d memory maps before, %d after 100 versions", before, after)
	}
	if n := len(h.metrics.bills.all); n != 0 {
		t.Errorf("%d bills are left", n)
	}
}

func TestBatchesSideBySide(t *testing.T) {
	h := hostOf(t, Config{Instances: 3})
	c := chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, scripted(false).bytes())})
	var senders sync.WaitGroup
	for s := range 8 {
		senders.Go(func() {
			for i := range 50 {
				key := fmt.Sprintf("%d-%d", s, i)
				b := batchOf("k"+key, "t", "k"+key)
				if err := c.Process(context.Background(), b); err != nil {
					t.Error(err)
				}
				if got, want := outcomes(b), "accepted key="+key+"\nrejected plugin_failed\naccepted key="+key+"\n"; got != want {
					t.Errorf("got %s want %s", got, want)
				}
			}
		})
	}
	senders.Wait()
}

func TestNewChainRefuses(t *testing.T) {
	h := hostOf(t, Config{Instances: 2})
	m := loadOf(t, h, scripted(false).bytes())
	tests := []struct {
		name   string
		step   Step
		code   event.Code
		detail string
	}{
		{"a configuration the guest refuses", Step{Name: "p", Module: m, Config: []byte("x is wrong")}, event.PluginRefused, "it returned 5: x is wrong"},
	}
	for _, tt := range tests {
		_, err := h.NewChain(context.Background(), []Step{{Name: "fine", Module: m}, tt.step}, Rules{})
		var p *event.Problem
		if !errors.As(err, &p) || p.Code != tt.code || !strings.Contains(p.Detail, tt.detail) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if n := m.refs.count.Load(); n != 1 {
		t.Errorf("%d references to the module are left", n)
	}
}
