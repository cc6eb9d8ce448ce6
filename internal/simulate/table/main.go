// Command table prints what the partitioner is measured by, each figure beside its target.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/simulate"
	"github.com/headgate-io/headgate/partitioner"
)

func main() {
	events := flag.Int("events", 10_000_000, "events that are measured in each run")
	warmup := flag.Int("warmup", 1_000_000, "events before them")
	check := flag.Bool("check", false, "end with 1 when a figure is over its target")
	flag.Parse()
	r := &runs{events: *events, warmup: *warmup}
	if err := r.all(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
	costs(r)
	fmt.Printf("\n%d figures are over their target\n", r.over)
	if *check && r.over > 0 {
		os.Exit(1)
	}
}

type runs struct{ events, warmup, over int }

// all runs the balance of each ordering.
func (r *runs) all(ctx context.Context) error {
	for _, keys := range []int{10_000, 1_000_000} {
		fmt.Printf("\nordering none, %d keys, 5 gateways, %d events\n%4s %4s  %-18s %-22s %-20s %-18s %10s %10s\n", keys, r.events,
			"n", "z", "max/mean", "imbalance", "keys split, %", "replication", "hashing", "two-choice")
		for _, n := range []int{10, 50, 100} {
			for i, z := range []float64{1, 1.4, 2} {
				t, err := r.run(ctx, partitioner.Unordered, shape{keys, n, z})
				if err != nil {
					return err
				}
				h := t.Result.Headgate
				fmt.Printf("%4d %4.1f  %-18s %-22s %-20s %-18s %10.2f %10.2f\n", n, z,
					r.against("%.4f", h.MaxOverMean, map[int][3]float64{10: {1.015, 1.015, 1.015}, 50: {1.025, 1.02, 1.02}, 100: {1.03, 1.02, 1.02}}[n][i]),
					r.against("%.1e", h.Imbalance, map[int][3]float64{10: {1e-3, 1e-6, 1e-6}, 50: {2e-4, 1e-6, 1e-6}, 100: {2e-4, 1e-6, 1e-6}}[n][i]),
					r.against("%.4f", 100*float64(h.KeysSplit)/float64(keys), map[int]float64{10_000: 0.6, 1_000_000: 0.004}[keys]),
					r.against("%.3f", h.Replication, 1.04), t.Result.Hashing.MaxOverMean, t.Result.TwoChoice.MaxOverMean)
			}
		}
	}
	for ordering, times := range map[partitioner.Ordering]float64{partitioner.BySource: 1.1, partitioner.Strict: 1.05} {
		fmt.Printf("\nordering %v, 10000 keys, 10000 producers: max/mean in relation to its bound\n%4s %4s  %-18s %8s %8s\n", ordering, "n", "z", "", "max/mean", "bound")
		for _, n := range []int{10, 50, 100} {
			for _, z := range []float64{1, 1.4, 2} {
				t, err := r.run(ctx, ordering, shape{10_000, n, z})
				if err != nil {
					return err
				}
				h := t.Result.Headgate
				fmt.Printf("%4d %4.1f  %-18s %8.3f %8.3f\n", n, z, r.against("%.3f", h.MaxOverMean/h.Bound, times), h.MaxOverMean, h.Bound)
			}
		}
	}
	return nil
}

type shape struct {
	keys, partitions int
	z                float64
}

func (r *runs) run(ctx context.Context, o partitioner.Ordering, s shape) (*simulate.Tally, error) {
	return simulate.Run(ctx, simulate.Config{Partitions: s.partitions, Gateways: 5, Producers: 10_000, Rate: 100_000, Ordering: o,
		Events: r.events, Warmup: r.warmup, Seed: 1}, simulate.NewZipf(s.z, s.keys, 512+partitioner.EventCost, 1))
}

// against formats a figure beside its target, with a mark when it is over.
func (r *runs) against(format string, got, most float64) string {
	mark := ""
	if got > most {
		mark = " !"
		r.over++
	}
	return fmt.Sprintf(format+" (%v)%s", got, most, mark)
}

// costs measures the look-up and the sketch on this machine as it is now.
func costs(r *runs) {
	var secret partitioner.Secret
	table, err := partitioner.NewTable(secret, partitioner.SlotsFor(partitioner.MaxPartitions), partitioner.Equal(partitioner.MaxPartitions))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	fmt.Printf("\ncost, ns\n")
	show := func(name string, most float64, hashes [][2]uint64, f func(*[2]uint64)) {
		allocations := testing.AllocsPerRun(1000, func() { f(&hashes[0]) })
		fmt.Printf("  %-32s %s, %v allocations\n", name, r.against("%.1f", median(hashes, f), most), allocations)
	}
	const events = 1 << 20
	for _, z := range []float64{0, 1, 1.4, 2} {
		from := simulate.NewZipf(z, 1_000_000, 576, 1)
		hashes := make([][2]uint64, events)
		for i := range hashes {
			hashes[i][0], hashes[i][1] = partitioner.Hash(secret, []byte(from.Keys()[from.Event(i).Key]))
		}
		if z == 1 {
			sum := int32(0)
			show("look-up, 16384 slots", 10, hashes[:4096], func(h *[2]uint64) { sum += table.Lookup(h[0], h[1], 0).Partition })
		}
		sketch := partitioner.NewSketch(partitioner.DefaultCounters)
		show(fmt.Sprintf("sketch, 1000000 keys, z = %v", z), 80, hashes, func(h *[2]uint64) { sketch.Add(h[0], h[1], 576) })
	}
}

// median is the time of one call in the middle one of many short rows of them: what else runs on the machine, and interrupts
// some of them, does not show in it. A call of f is part of it.
func median(hashes [][2]uint64, f func(*[2]uint64)) float64 {
	const row = 4096
	var took []float64
	for n := range 1000 {
		at := n * row % len(hashes)
		began := time.Now()
		for i := range row {
			f(&hashes[at+i])
		}
		took = append(took, float64(time.Since(began).Nanoseconds())/row)
	}
	slices.Sort(took)
	return took[len(took)/2]
}
