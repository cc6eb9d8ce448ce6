package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/internal/simulate"
	"github.com/headgate-io/headgate/partitioner"
)

// simulateOptions are the flags of simulate.
type simulateOptions struct {
	zipf                                     float64
	keys, events, warmup                     int
	partitions, target                       string
	gateways, producers, size, drift, fanout int
	rate                                     float64
	trace, key, ordering, plot               string
	seed                                     uint64
	json, changes                            bool
}

func newSimulateCommand(c clock) *cobra.Command {
	var o simulateOptions
	cmd := &cobra.Command{
		Use:   "simulate (--zipf Z --keys K | --trace FILE --key POINTER) --partitions N",
		Short: "Say how evenly a stream would be spread over partitions, and what would be split and moved",
		Long: "Run the sketch, the planner and the routing table over a synthetic or recorded stream, on a virtual clock, and plain\n" +
			"hashing and the choice of two beside them. Nothing is sent and no gateway is needed.",
		Example: "  headgate simulate --zipf 1.4 --keys 10000 --events 10000000 --partitions 100\n" +
			"  headgate simulate --trace access.ndjson --key /remote_ip --partitions 16 --plot load.svg",
		Args: noArguments,
	}
	f := cmd.Flags()
	f.Float64Var(&o.zipf, "zipf", 1, "synthetic stream: exponent of the Zipf distribution, 0 for keys that are all alike")
	f.IntVar(&o.keys, "keys", 10_000, "synthetic stream: number of keys")
	f.IntVar(&o.size, "size", 512, "synthetic stream: bytes of an event")
	f.IntVar(&o.drift, "drift", 0, "synthetic stream: the ranks go to the next keys each so many events, 0 for never")
	f.StringVar(&o.trace, "trace", "", "recorded stream: file with a JSON value a line, - for standard input")
	f.StringVar(&o.key, "key", "", "recorded stream: JSON pointer to the key")
	f.IntVar(&o.events, "events", 0, "events that are measured; a trace is repeated (default 1000000, or the whole trace if that is more)")
	f.IntVar(&o.warmup, "warmup", -1, "events before that (default 10 seconds of --rate)")
	f.StringVar(&o.partitions, "partitions", "16", "number of partitions, or 4..64 for one that follows the load")
	f.StringVar(&o.target, "target", "", "bytes a second that a partition is meant to take, like 5MiB/s")
	f.IntVar(&o.gateways, "gateways", 1, "number of gateways, each with a sketch of its own")
	f.IntVar(&o.producers, "producers", 1000, "number of producers")
	f.Float64Var(&o.rate, "rate", 100_000, "events a second of virtual time")
	f.StringVar(&o.ordering, "ordering", "source", "ordering of the stream: strict, source, none")
	f.IntVar(&o.fanout, "max-fanout", 0, "the most partitions of one key, 0 for all")
	f.Uint64Var(&o.seed, "seed", 1, "the same seed gives the same run")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.BoolVar(&o.changes, "changes", false, "print each change of the table and its reason")
	f.StringVar(&o.plot, "plot", "", "write the load of each partition over time, the changes and the split keys to an SVG file")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		config, from, err := o.prepare(cmd.InOrStdin())
		if err != nil {
			return err
		}
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		p := newProgress(cmd.ErrOrStderr(), 0, c.now())
		config.Progress = func(done, all int, t *simulate.Tally) { p.share(done, all, t, c.now()) }
		tally, err := runSimulation(ctx, config, from)
		p.clear()
		if err != nil {
			return err
		}
		return o.report(cmd.OutOrStdout(), tally)
	}
	return cmd
}

func runSimulation(ctx context.Context, c simulate.Config, from simulate.Source) (*simulate.Tally, error) {
	tally, err := simulate.Run(ctx, c, from)
	if err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	return tally, nil
}

// prepare checks the flags and opens the stream.
func (o *simulateOptions) prepare(stdin io.Reader) (simulate.Config, simulate.Source, error) {
	c := simulate.Config{Gateways: o.gateways, Producers: o.producers, Rate: o.rate, Events: o.events,
		Warmup: o.warmup, Seed: o.seed, Settings: partitioner.Settings{MaxFanout: o.fanout}}
	var ok bool
	if c.Ordering, ok = partitioner.ParseOrdering(o.ordering); !ok {
		return c, nil, usagef("--ordering is strict, source or none, not %q", o.ordering)
	}
	if err := o.numbers(&c); err != nil {
		return c, nil, err
	}
	switch {
	case o.gateways < 1 || o.gateways > 1000 || o.producers < 1 || o.keys < 1 || o.size < 0 || o.drift < 0 || o.fanout < 0 || o.events < 0:
		return c, nil, usagef("--gateways (up to 1000), --producers and --keys are at least 1; other numbers are not negative")
	case !(o.rate >= 10 && o.rate <= 1e9) || !(o.zipf >= 0 && o.zipf <= 10):
		return c, nil, usagef("--rate is 10 to 1e9, --zipf 0 to 10")
	case (o.trace == "") != (o.key == ""):
		return c, nil, usagef("--trace FILE and --key POINTER belong together: --key /user is the member \"user\" of each line")
	}
	if c.Warmup < 0 {
		c.Warmup = int(10 * o.rate)
	}
	from, err := o.source(stdin)
	if err != nil {
		return c, nil, err
	}
	if t, ok := from.(*simulate.Trace); c.Events == 0 {
		c.Events = 1_000_000
		if ok {
			c.Events = max(c.Events, t.Len())
		}
	}
	return c, from, nil
}

// numbers reads the number of partitions, or its bounds, and their target.
func (o *simulateOptions) numbers(c *simulate.Config) error {
	first, last, elastic := strings.Cut(o.partitions, "..")
	if !elastic {
		last = first
	}
	var err1, err2, err3 error
	s := &c.Settings
	s.Min, err1 = strconv.Atoi(first)
	s.Max, err2 = strconv.Atoi(last)
	if o.target != "" {
		var target config.PerSecond
		err3 = target.UnmarshalText([]byte(o.target))
		s.Target = float64(target)
	}
	switch {
	case err1 != nil || err2 != nil || s.Min < 1 || s.Max < s.Min || s.Max > partitioner.MaxPartitions:
		return usagef("--partitions is 1 to %d, or two of these like 4..64, the lower one first, not %q", partitioner.MaxPartitions, o.partitions)
	case err3 != nil:
		return usagef("--target is what a partition is meant to take, like 5MiB/s, not %q", o.target)
	case elastic && s.Target == 0:
		return usagef("--partitions %s needs --target, what a partition is meant to take, like 5MiB/s", o.partitions)
	}
	if c.Partitions = s.Max; elastic {
		c.First = s.Min
	}
	return nil
}

func (o *simulateOptions) source(stdin io.Reader) (simulate.Source, error) {
	if o.trace == "" {
		z := simulate.NewZipf(o.zipf, o.keys, float64(o.size+partitioner.EventCost), o.seed)
		z.Drift = o.drift
		return z, nil
	}
	pointer, err := jsonscan.ParsePointer(o.key)
	if err != nil {
		return nil, usageError(err)
	}
	if pointer.Empty() {
		return nil, usagef("--key is a JSON pointer like /user")
	}
	file, _, err := openInput(o.trace, stdin)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	t, err := simulate.ReadTrace(file, pointer, partitioner.EventCost)
	if err != nil {
		return nil, fmt.Errorf("trace %s: %w", o.trace, err)
	}
	return t, nil
}

// report prints the result and writes the plot.
func (o *simulateOptions) report(w io.Writer, t *simulate.Tally) error {
	if o.plot != "" {
		var picture bytes.Buffer
		if err := t.WriteSVG(&picture); err != nil {
			return err
		}
		if err := os.WriteFile(o.plot, picture.Bytes(), 0o644); err != nil {
			return fmt.Errorf("plot: %w", err)
		}
	}
	if o.json {
		return printJSON(w, t.Result)
	}
	if o.changes {
		for _, s := range t.Seconds {
			for _, c := range s.Changes {
				fmt.Fprintf(w, "%v %v\n", s.At, c)
			}
			for _, n := range s.Notes {
				fmt.Fprintf(w, "%v note: %s\n", s.At, n)
			}
		}
	}
	r, h := t.Result, t.Result.Headgate
	fmt.Fprintf(w, "%d events of %d keys on %s partitions, %v of virtual time, ordering %s\n\n", r.Events, r.Keys, o.partitions,
		time.Duration(r.Seconds*float64(time.Second)).Round(time.Second), o.ordering)
	fmt.Fprintf(w, "%-12s %10s %12s %12s\n", "", "max/mean", "imbalance", "replication")
	for _, line := range []struct {
		name string
		simulate.Outcome
	}{{"headgate", h.Outcome}, {"hashing", r.Hashing}, {"two-choice", r.TwoChoice}} {
		fmt.Fprintf(w, "%-12s %10.3f %12.2e %12.3f\n", line.name, line.MaxOverMean, line.Imbalance, line.Replication)
	}
	if h.Added+h.Drained > 0 {
		fmt.Fprintf(w, "\n%d partitions take part at the end: %d were added, %d given up; max/mean is that of the last second\n", h.Active, h.Added, h.Drained)
	}
	fmt.Fprintf(w, "\nno placement gets below a max/mean of %.3f with this ordering\n", h.Bound)
	fmt.Fprintf(w, "%d keys were split (%.3g %%): %d splits, %d times more children, %d merges; %d slots moved, %d of them in the second half\n",
		h.KeysSplit, 100*h.SplitShare, h.Splits, h.Grows, h.Merges, h.Moves, h.LateMoves)
	return nil
}
