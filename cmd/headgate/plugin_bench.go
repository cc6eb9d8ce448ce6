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
		Use:   "bench [DIR | FILE ...]",
		Short: "Measure modules beside the built-in extractor: time an event, and memory",
		Long: "Run the module of a plugin's folder (default: here), or FILES, over sample events again and again, in batches of 256 on one core,\nbeside the built-in extractor. Times are those of the processor, the median of the rounds; those of modules and extractor come on\n" +
			"top of the syntax check. On a busy machine their ratio tells more than they do.",
		Example: "  headgate plugin bench\n  headgate plugin bench *.wasm --events sample.ndjson --key /remote_ip",
	}
	cmd.Flags().StringVar(&events, "events", "", "file with sample events, JSON, one a line (required for a FILE)")
	cmd.Flags().StringVar(&config, "config", "", "the plugins' configuration, JSON or @FILE")
	cmd.Flags().StringVar(&key, "key", "", "JSON pointer of the key that the built-in extractor is to find (required for a FILE)")
	cmd.Flags().IntVar(&rounds, "rounds", 5, "rounds of 0.2 s for each")
	outputFlag(cmd, &output, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkOutput(output, "text", "json"); err != nil {
			return err
		}
		subs, err := openSubjects(args)
		if err != nil {
			return err
		}
		events, key = cmp.Or(events, subs[0].path(subs[0].Events)), cmp.Or(key, subs[0].Key)
		if events == "" || key == "" || rounds < 1 {
			return usagef("give --events FILE, --key POINTER such as /user, and at least one of --rounds")
		}
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		b, err := newBench(events, key, cmd.InOrStdin())
		if err != nil {
			return err
		}
		b.out, b.json = cmd.OutOrStdout(), output == "json"
		for _, sub := range subs {
			cfg, err := sub.config(config)
			if err != nil {
				return err
			}
			t := &trial{out: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(), syntax: event.JSON, untested: true}
			if err := t.load(ctx, sub.file, sub.wasm, cfg); err != nil {
				return fmt.Errorf("%s: %w", sub.file, err)
			}
			defer t.close()
			b.modules, b.files = append(b.modules, t), append(b.files, sub.file)
		}
		return b.run(ctx, rounds)
	}
	return cmd
}

// openSubjects is openSubject for each argument.
func openSubjects(args []string) (subs []*subject, err error) {
	if len(args) == 0 {
		args = []string{"."}
	}
	for _, arg := range args {
		sub, err := openSubject([]string{arg})
		if err != nil {
			return nil, err
		}
		subs = append(subs, sub)
	}
	return subs, nil
}

// bench measures several ways over the same batch.
type bench struct {
	out     io.Writer
	json    bool
	modules []*trial
	files   []string // their names
	batch   *event.Batch
	key     builtin.Key
	scanner *jsonscan.Scanner // finds the key
	plain   *jsonscan.Scanner // only checks
	bytes   int               // of an event, on average
}

// benchResult is what it prints; times are nanoseconds an event.
type benchResult struct {
	Bytes   int           `json:"bytes_per_event"`
	Check   float64       `json:"check_ns"`
	Builtin float64       `json:"builtin_ns"` // besides the check
	Plugin  float64       `json:"plugin_ns"`  // of the first module, besides the check
	Memory  int           `json:"plugin_memory_bytes"`
	Plugins []benchModule `json:"plugins"` // all of them
}

type benchModule struct {
	Module string  `json:"module"`
	Cost   float64 `json:"ns"`
	Memory int     `json:"memory_bytes"`
}

// newBench reads the events and repeats them until a batch is full.
func newBench(file, key string, stdin io.Reader) (*bench, error) {
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
	b := &bench{key: builtin.Key{JSON: key}, plain: jsonscan.New(64, nil), scanner: jsonscan.New(64, []jsonscan.Pointer{event.FieldKey: pointer})}
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

// run alternates between the ways, so that what else the machine does meets them alike.
func (b *bench) run(ctx context.Context, rounds int) error {
	ways := []func() error{
		func() error { b.check(b.plain); return nil },
		func() error { b.check(b.scanner); b.key.FillKeys(b.batch); return nil },
	}
	for _, m := range b.modules {
		ways = append(ways, func() error { return m.chain.Process(ctx, b.batch) })
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
	r := benchResult{Bytes: b.bytes, Check: check, Builtin: max(0, median(1)-check)}
	for i, m := range b.modules {
		memory, err := memoryOf(m.metrics)
		if err != nil {
			return err
		}
		r.Plugins = append(r.Plugins, benchModule{b.files[i], median(2 + i), memory})
	}
	r.Plugin, r.Memory = r.Plugins[0].Cost, r.Plugins[0].Memory
	if b.json {
		return printJSON(b.out, r)
	}
	return b.print(r)
}

// print prints a table; how much more than the extractor a module costs is left out where that costs next to nothing.
func (b *bench) print(r benchResult) error {
	wide := 48
	for _, m := range r.Plugins {
		wide = max(wide, len("plugin ")+len(m.Module))
	}
	row := func(what string, ns float64, memory string) string {
		times := "-"
		if r.Builtin >= 1 && memory != "-" {
			times = fmt.Sprintf("%.1f", ns/r.Builtin)
		}
		return fmt.Sprintf("%-*s%12.0f%12s%12s\n", wide, what, ns, memory, times)
	}
	text := fmt.Sprintf("%-*s%12s%12s%12s\n", wide, fmt.Sprintf("events of %d bytes", r.Bytes), "ns an event", "memory", "x built-in") +
		row("syntax check", r.Check, "-") + row("built-in key "+b.key.JSON, r.Builtin, "-")
	for _, m := range r.Plugins {
		text += row("plugin "+m.Module, m.Cost, fmt.Sprintf("%d KiB", m.Memory>>10))
	}
	_, err := io.WriteString(b.out, text)
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
		from := cpuTime()
		if err := way(); err != nil {
			return 0, err
		}
		spent += cpuTime() - from
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
