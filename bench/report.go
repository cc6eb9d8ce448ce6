package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// figures are the medians of a case.
type figures struct {
	EventsPerSecond float64 `json:"events_per_s"`
	CPU             float64 `json:"cpu_s_per_million"`
	Ratio           float64 `json:"ratio,omitempty"` // of CPU to the floor's: the median over the rounds
	Memory          float64 `json:"rss_mb"`
	P50             float64 `json:"p50_ms"`
	P99             float64 `json:"p99_ms"`
	Retries         int     `json:"retries"` // requests that were refused with 429 or 503 and sent again
}

// singles compares the gateway with a bare server at one event a request.
type singles struct {
	RateRatio float64  `json:"rate_ratio"` // the median over the rounds; 0 when one of them was not measured
	CPURatio  float64  `json:"cpu_ratio"`  // likewise
	Gateway   *figures `json:"gateway"`
	Bare      *figures `json:"bare"`
}

// flatness compares peak memory after few and many events.
type flatness struct {
	Few   float64 `json:"rss_mb_1m"`
	Many  float64 `json:"rss_mb_10m"`
	Ratio float64 `json:"ratio"` // at most 1.1
}

// report is the result of a run; what was not measured is null.
type report struct {
	Machine     string    `json:"machine"`
	Floor       *figures  `json:"floor"`
	FloorFilter *figures  `json:"floor_filter"`
	Builtin     *figures  `json:"builtin"`
	CPlugin     *figures  `json:"c_plugin"`
	GoPlugin    *figures  `json:"go_plugin"`
	Single      *singles  `json:"single"`
	Flat        *flatness `json:"flat,omitempty"`
}

func newReport(machine string, samples map[string][]sample) *report {
	all := map[string]*figures{}
	for name, s := range samples {
		all[name] = medians(s)
	}
	var single *singles
	if bare, gateway := all["single_bare"], all["single"]; bare != nil || gateway != nil {
		single = &singles{Gateway: gateway, Bare: bare}
	}
	for _, g := range goals {
		f, base := all[g.name], all[g.floor]
		if f == nil || base == nil {
			continue
		}
		cpu := ratio(samples[g.name], samples[g.floor], func(s sample) float64 { return s.CPU })
		if g.minimum == 0 {
			f.Ratio = cpu
			continue
		}
		single.CPURatio = cpu
		single.RateRatio = ratio(samples[g.name], samples[g.floor], func(s sample) float64 { return s.EventsPerSecond })
	}
	return &report{Machine: machine, Floor: all["floor"], FloorFilter: all["floor_filter"],
		Builtin: all["builtin"], CPlugin: all["c_plugin"], GoPlugin: all["go_plugin"], Single: single}
}

func medians(samples []sample) *figures {
	of := func(field func(s sample) float64) float64 {
		values := make([]float64, len(samples))
		for i, s := range samples {
			values[i] = field(s)
		}
		return median(values)
	}
	return &figures{
		EventsPerSecond: math.Round(of(func(s sample) float64 { return s.EventsPerSecond })),
		CPU:             round(of(func(s sample) float64 { return s.CPU }), 3),
		Memory:          round(of(func(s sample) float64 { return s.Memory }), 1),
		P50:             round(of(func(s sample) float64 { return s.P50 }), 2),
		P99:             round(of(func(s sample) float64 { return s.P99 }), 2),
		Retries:         int(of(func(s sample) float64 { return float64(s.Retries) })),
	}
}

// ratio is the median of the ratios round by round: measurements that follow one another share the machine's mood.
func ratio(a, b []sample, field func(s sample) float64) float64 {
	var ratios []float64
	for i := range min(len(a), len(b)) {
		ratios = append(ratios, field(a[i])/field(b[i]))
	}
	return round(median(ratios), 3)
}

func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	if n%2 == 1 {
		return values[n/2]
	}
	return (values[n/2-1] + values[n/2]) / 2
}

func round(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}

// row is a line of the table; figures may be nil.
type row struct {
	name string
	*figures
	floor string
}

// table shows the report to people.
func (r *report) table() string {
	var b strings.Builder
	fmt.Fprintln(&b, r.Machine)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "case\tevents/s\tCPU s per million\tto its floor\tpeak MB\tp50 ms\tp99 ms\tretries\t")
	rows := []row{{"floor", r.Floor, ""}, {"builtin", r.Builtin, ""}, {"floor_filter", r.FloorFilter, ""},
		{"c_plugin", r.CPlugin, ""}, {"go_plugin", r.GoPlugin, ""}}
	if r.Single != nil {
		rows = append(rows, row{"single, bare", r.Single.Bare, ""},
			row{"single", r.Single.Gateway, fmt.Sprintf("%.2f of the rate", r.Single.RateRatio)})
	}
	for _, l := range rows {
		if l.figures == nil {
			continue
		}
		if l.Ratio > 0 {
			l.floor = fmt.Sprintf("%.2f", l.Ratio)
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.3f\t%s\t%.1f\t%.2f\t%.2f\t%d\t\n",
			l.name, l.EventsPerSecond, l.CPU, l.floor, l.Memory, l.P50, l.P99, l.Retries)
	}
	w.Flush()
	if r.Flat != nil {
		fmt.Fprintf(&b, "peak memory at 10 M events: %.1f MB, %.2f of that at 1 M\n", r.Flat.Many, r.Flat.Ratio)
	}
	return b.String()
}

// misses says which targets the report misses.
func (r *report) misses() error {
	var all []error
	got := map[string]*figures{"builtin": r.Builtin, "c_plugin": r.CPlugin, "go_plugin": r.GoPlugin}
	for _, g := range goals {
		switch f := got[g.name]; {
		case f != nil && f.Ratio > g.ratio:
			all = append(all, fmt.Errorf("%s: %.2f times the CPU time of its floor, the target is %.2f", g.name, f.Ratio, g.ratio))
		case g.minimum > 0 && r.Single != nil && r.Single.RateRatio > 0 && r.Single.RateRatio < g.minimum:
			all = append(all, fmt.Errorf("%s: %.2f of the rate of a bare server, the target is %.2f", g.name, r.Single.RateRatio, g.minimum))
		}
	}
	if r.Flat != nil && r.Flat.Ratio > maxGrowth {
		all = append(all, fmt.Errorf("peak memory grows to %.2f times, the limit is %.2f", r.Flat.Ratio, maxGrowth))
	}
	return errors.Join(all...)
}

// maxGrowth is how much more memory ten million events may need than one million.
const maxGrowth = 1.1

// measureFlat runs the built-in key twice, each in a new process.
func (h *harness) measureFlat(ctx context.Context) (*flatness, error) {
	var peaks []float64
	for _, events := range []int{1_000_000, 10_000_000} {
		s, err := h.measure(ctx, benchCase{name: "builtin", kind: gatewayKind, connections: 8, batch: 500}, events)
		if err != nil {
			return nil, fmt.Errorf("flat: %w", err)
		}
		peaks = append(peaks, round(s.Memory, 1))
	}
	return &flatness{Few: peaks[0], Many: peaks[1], Ratio: round(peaks[1]/peaks[0], 3)}, nil
}

// publish prints the table and, as the last line, the report as JSON, and keeps both.
func (h *harness) publish(r *report) error {
	doc, err := json.Marshal(r)
	if err != nil {
		return err
	}
	table := r.table()
	if h.embedded {
		table += "backend: embedded JetStream, synced; the floors send to the sink\n"
	}
	if h.results != "" {
		name := filepath.Join(h.results, time.Now().Format("2006-01-02")+"-"+fileName(r.Machine))
		if err := keep(name, table, string(doc)+"\n"); err != nil {
			return err
		}
	}
	fmt.Print("\n", table, "\n")
	misses := r.misses()
	if misses != nil {
		fmt.Fprintln(os.Stderr, misses)
	}
	fmt.Printf("%s\n", doc)
	if h.check && misses != nil {
		return errors.New("targets are missed")
	}
	return nil
}

func keep(name, table, doc string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(name+".txt", []byte(table), 0o644), os.WriteFile(name+".json", []byte(doc), 0o644))
}

// machine names the processor and how many of it there are.
func machine() string {
	model := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d cores, %s/%s, %s", model, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// fileName is a machine's name up to its system, fit for a file.
func fileName(machine string) string {
	cpu, _, _ := strings.Cut(machine, "/")
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == ' ':
			return '-'
		}
		return -1
	}, cpu)
}
