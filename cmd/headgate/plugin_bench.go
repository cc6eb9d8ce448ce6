package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/plugins/builtin"
)

func newPluginBenchCommand() *cobra.Command {
	var events, config, key, output string
	var rounds int
	cmd := &cobra.Command{
		Use:     "bench [DIR | FILE]",
		Short:   "Measure a module beside the built-in extractor: time an event, and memory",
		Long:    "Run the module of a plugin's folder (default: here), or a FILE, over sample events again and again, in batches of 256 on one core,\nbeside the built-in extractor. Times are the median of the rounds; those of both come on top of the syntax check.",
		Example: "  headgate plugin bench\n  headgate plugin bench accesslog.wasm --events sample.ndjson --key /remote_ip",
		Args:    cobra.MaximumNArgs(1),
	}
	cmd.Flags().StringVar(&events, "events", "", "file with sample events, JSON, one a line (required for a FILE)")
	cmd.Flags().StringVar(&config, "config", "", "the plugin's configuration, JSON or @FILE")
	cmd.Flags().StringVar(&key, "key", "", "JSON pointer of the key that the built-in extractor is to find (required for a FILE)")
	cmd.Flags().IntVar(&rounds, "rounds", 5, "rounds of 0.2 s for each of the three")
	outputFlag(cmd, &output, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkOutput(output, "text", "json"); err != nil {
			return err
		}
		sub, err := openSubject(args)
		if err != nil {
			return err
		}
		events, key = cmp.Or(events, sub.path(sub.Events)), cmp.Or(key, sub.Key)
		if events == "" || key == "" || rounds < 1 {
			return usagef("give --events FILE, --key POINTER such as /user, and at least one of --rounds")
		}
		cfg, err := sub.config(config)
		if err != nil {
			return err
		}
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		t := &trial{out: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(), json: output == "json", syntax: event.JSON}
		b, err := t.newBench(events, key, cmd.InOrStdin())
		if err != nil {
			return err
		}
		if err := t.load(ctx, sub.file, sub.wasm, cfg); err != nil {
			return err
		}
		defer t.close()
		return b.run(ctx, rounds)
	}
	return cmd
}

// bench measures three ways over the same batch.
type bench struct {
	*trial
	batch   *event.Batch
	key     builtin.Key
	scanner *jsonscan.Scanner // finds the key
	plain   *jsonscan.Scanner // only checks
	bytes   int               // of an event, on average
}

// benchResult is what it prints; times are nanoseconds an event.
type benchResult struct {
	Bytes   int     `json:"bytes_per_event"`
	Check   float64 `json:"check_ns"`
	Builtin float64 `json:"builtin_ns"` // besides the check
	Plugin  float64 `json:"plugin_ns"`  // besides the check
	Memory  int     `json:"plugin_memory_bytes"`
}

// newBench reads the events and repeats them until a batch is full.
func (t *trial) newBench(file, key string, stdin io.Reader) (*bench, error) {
	pointer, err := jsonscan.ParsePointer(key)
	if err != nil {
		return nil, usagef("--key %s: %v", key, err)
	}
	in, _, err := openInput(file, stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	read, err := cut(in, ndjson, trialBatch).next()
	if err != nil {
		return nil, usagef("%s: no events: %v", file, err)
	}
	b := &bench{trial: t, key: builtin.Key{JSON: key}, plain: jsonscan.New(64, nil), scanner: jsonscan.New(64, []jsonscan.Pointer{event.FieldKey: pointer})}
	b.batch = &event.Batch{Stream: "bench", Syntax: event.JSON, Arrived: time.Now().UnixNano()}
	for i := range trialBatch {
		data := read.event(i % len(read.starts))
		if f := b.plain.Check(data); f.Code != "" {
			return nil, usagef("%s: event %d is no JSON: %s", file, read.first+i, f.Detail)
		}
		b.bytes += len(data)
		b.batch.Events = append(b.batch.Events, event.Event{Data: data, Slot: event.NoSlot, Child: event.NoSlot})
	}
	b.bytes /= trialBatch
	return b, nil
}

// run alternates between the three, so that what else the machine does meets them alike.
func (b *bench) run(ctx context.Context, rounds int) error {
	ways := []func() error{
		func() error { b.check(b.plain); return nil },
		func() error { b.check(b.scanner); b.key.FillKeys(b.batch); return nil },
		func() error { return b.chain.Process(ctx, b.batch) },
	}
	times := make([][]float64, len(ways))
	for range rounds {
		for i, way := range ways {
			ns, err := b.measure(ctx, way)
			if err != nil {
				return err
			}
			times[i] = append(times[i], ns)
		}
	}
	median := func(i int) float64 { slices.Sort(times[i]); return times[i][rounds/2] }
	check := median(0)
	r := benchResult{Bytes: b.bytes, Check: check, Builtin: max(0, median(1)-check), Plugin: median(2)}
	var err error
	if r.Memory, err = memoryOf(b.metrics); err != nil {
		return err
	}
	if b.json {
		return printJSON(b.out, r)
	}
	_, err = fmt.Fprintf(b.out, "%-24s%12s%12s\n%-24s%12.0f%12s\n%-24s%12.0f%12s\n%-24s%12.0f%12s\n",
		fmt.Sprintf("events of %d bytes", r.Bytes), "ns an event", "memory",
		"syntax check", r.Check, "-",
		"built-in key "+b.key.JSON, r.Builtin, "-",
		"plugin", r.Plugin, fmt.Sprintf("%d KiB", r.Memory>>10))
	return err
}

// measure runs a way over fresh batches for a while and returns nanoseconds an event, those of making it fresh left out.
func (b *bench) measure(ctx context.Context, way func() error) (float64, error) {
	const long = 200 * time.Millisecond
	originals := make([][]byte, len(b.batch.Events)) // a plugin may put others in their place
	for i := range b.batch.Events {
		originals[i] = b.batch.Events[i].Data
	}
	var spent time.Duration
	n := 0
	for began := time.Now(); time.Since(began) < long && ctx.Err() == nil; n += len(originals) {
		for i := range b.batch.Events {
			b.batch.Events[i] = event.Event{Data: originals[i], Slot: event.NoSlot, Child: event.NoSlot}
		}
		b.batch.Errors = b.batch.Errors[:0]
		from := time.Now()
		if err := way(); err != nil {
			return 0, err
		}
		spent += time.Since(from)
	}
	for i := range b.batch.Events {
		b.batch.Events[i].Data = originals[i]
	}
	return float64(spent.Nanoseconds()) / float64(max(n, 1)), ctx.Err()
}

func (b *bench) check(s *jsonscan.Scanner) {
	for i := range b.batch.Events {
		s.Check(b.batch.Events[i].Data)
		b.batch.Events[i].Fields = s.EventFields()
	}
}

// memoryOf is the most that an instance had, by the gateway's own metric.
func memoryOf(metrics *prometheus.Registry) (int, error) {
	families, err := metrics.Gather()
	if err != nil {
		return 0, err
	}
	for _, f := range families {
		if strings.HasSuffix(f.GetName(), "plugin_memory_bytes") && len(f.Metric) > 0 {
			return int(f.Metric[0].Gauge.GetValue()), nil
		}
	}
	return 0, fmt.Errorf("BUG: no memory in the metrics")
}
