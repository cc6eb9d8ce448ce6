package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options are the flags of the harness.
type options struct {
	program         string
	cPlugin         string
	goPlugin        string
	embedded, check bool
	flat            bool
	events, singles int
	rounds          int
	only            string
	results         string
}

func (o *options) parse(args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.program, "headgate", "bin/headgate", "the gateway")
	flags.StringVar(&o.goPlugin, "go-plugin", "examples/plugins/accesslog/accesslog.wasm", "module for the case go_plugin")
	flags.StringVar(&o.cPlugin, "c-plugin", "examples/plugins/accesslog-c/accesslog.wasm", "module for the case c_plugin")
	flags.BoolVar(&o.embedded, "embedded", false, "let the gateway keep the events in its embedded JetStream, synced to disk, instead of sending them to the sink")
	flags.BoolVar(&o.check, "check", false, "exit 1 when a ratio misses its target")
	flags.BoolVar(&o.flat, "flat", false, "also compare peak memory after 10 million events with that after 1 million")
	flags.IntVar(&o.events, "events", 3_000_000, "events of a measurement in requests of 500")
	flags.IntVar(&o.singles, "singles", 200_000, "events of a measurement in requests of one")
	flags.IntVar(&o.rounds, "rounds", 3, "measurements of each case; medians count")
	flags.StringVar(&o.only, "only", "", "cases to measure, with a comma between; empty: all")
	flags.StringVar(&o.results, "results", "bench/results", "folder for the results; empty: keep none")
	return flags.Parse(args)
}

// sample is one measurement.
type sample struct {
	EventsPerSecond float64 // from the first byte sent to the last event at the sink
	CPU             float64 // seconds per million events sent
	Memory          float64 // peak, MB
	P50, P99        float64 // ms
	Retries         int
}

// harness measures cases one by one, each with processes of its own.
type harness struct {
	options
	lines  []line
	folder string // for the gateways' data
	starts int
}

// A measurement begins with a pass in which the sink decompresses and counts; it also warms the server up.
const (
	warmBatches = 200_000
	warmSingles = 2_000
)

func runHarness(ctx context.Context, args []string) (err error) {
	h := &harness{}
	if err := h.parse(args); err != nil {
		return err
	}
	if runtime.GOOS != "linux" {
		return errors.New("CPU time and memory of processes are read from /proc: this runs on Linux only")
	}
	if h.folder, err = os.MkdirTemp("", "headgate-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(h.folder)
	h.lines = makeLines()
	r, err := h.measureAll(ctx)
	if err != nil {
		return err
	}
	if h.flat {
		if r.Flat, err = h.measureFlat(ctx); err != nil {
			return err
		}
	}
	return h.publish(r)
}

// measureAll alternates between the cases, so that a machine that changes its pace changes it for all.
func (h *harness) measureAll(ctx context.Context) (*report, error) {
	cases := h.choose()
	samples := map[string][]sample{}
	for round := range h.rounds {
		for _, c := range cases {
			s, err := h.measure(ctx, c, h.eventsOf(c))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			fmt.Fprintf(os.Stderr, "round %d  %-12s %8.0f events/s %6.3f CPU s per million\n", round+1, c.name, s.EventsPerSecond, s.CPU)
			samples[c.name] = append(samples[c.name], s)
		}
	}
	return newReport(machine(), samples), nil
}

// choose returns the cases that are asked for and can be measured.
func (h *harness) choose() (cases []benchCase) {
	for _, c := range allCases(h.goPlugin, h.cPlugin) {
		if h.only != "" && !slices.Contains(strings.Split(h.only, ","), c.name) {
			continue
		}
		if c.plugin != "" {
			if _, err := os.Stat(c.plugin); err != nil {
				fmt.Fprintf(os.Stderr, "%s is skipped: %v\n", c.name, err)
				continue
			}
		}
		cases = append(cases, c)
	}
	return cases
}

func (h *harness) eventsOf(c benchCase) int {
	if c.batch == 1 {
		return h.singles
	}
	return h.events
}

// measure starts a sink and a server, warms them up, drives them with so many events, and stops them.
func (h *harness) measure(ctx context.Context, c benchCase, events int) (s sample, err error) {
	p, err := startRole(ctx, "sink")
	if err != nil {
		return s, err
	}
	defer p.stop()
	sink := sinkClient{url: "http://" + p.address + "/events"}
	server, err := h.start(ctx, c, sink)
	if err != nil {
		return s, err
	}
	defer server.stop()
	warm := warmBatches
	if c.batch == 1 {
		warm = warmSingles
	}
	if err := sink.reset(ctx, true); err != nil {
		return s, err
	}
	if _, _, err := h.drive(ctx, c, server, drive{events: warm}); err != nil {
		return s, fmt.Errorf("warm up: %w", err)
	}
	return h.observe(ctx, c, server, observation{events: events, warm: warm, sink: sink})
}

// observation is what observe must know.
type observation struct {
	events, warm int
	sink         sinkClient
}

func (h *harness) observe(ctx context.Context, c benchCase, server *server, o observation) (s sample, err error) {
	d := drive{events: o.events}
	if c.kind == gatewayKind && h.embedded {
		d.before = h.expected(c, o.warm) // its counter can't be reset
	}
	if err := o.sink.reset(ctx, false); err != nil {
		return s, err
	}
	before, err := server.idleCPU(ctx)
	if err != nil {
		return s, err
	}
	load, took, err := h.drive(ctx, c, server, d)
	if err != nil {
		return s, err
	}
	after, err1 := server.idleCPU(ctx)
	memory, err2 := server.peakMemory()
	n := float64(o.events)
	return sample{
		EventsPerSecond: n / took.Seconds(), CPU: (after - before) / n * 1e6, Memory: float64(memory) / 1e6,
		P50: load.P50, P99: load.P99, Retries: load.Retries,
	}, errors.Join(err1, err2)
}

func (h *harness) start(ctx context.Context, c benchCase, sink sinkClient) (*server, error) {
	switch c.kind {
	case floorKind:
		return floorServer(ctx, sink, c.filter)
	case bareKind:
		return bareServer(ctx)
	}
	h.starts++
	folder := filepath.Join(h.folder, strconv.Itoa(h.starts))
	return gateway{program: h.program, folder: folder, embedded: h.embedded, plugin: c.plugin}.start(ctx, sink)
}

// drive is one run of the load generator.
type drive struct {
	events int
	before int // events that had passed before
}

// drive sends events and waits until exactly those that must have passed have. It returns how long that took.
func (h *harness) drive(ctx context.Context, c benchCase, s *server, d drive) (r loadReport, took time.Duration, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, 0, err
	}
	var out bytes.Buffer
	p, err := start(ctx, &out, self, "load", "-url="+s.url, "-connections="+strconv.Itoa(c.connections),
		"-batch="+strconv.Itoa(c.batch), "-events="+strconv.Itoa(d.events))
	if err != nil {
		return r, 0, err
	}
	select {
	case <-p.ended:
	case <-s.ended:
		p.stop()
		return r, 0, s.failure()
	}
	finished := time.Now()
	if p.err != nil {
		return r, 0, p.failure()
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return r, 0, err
	}
	if s.passed != nil {
		err = h.arrived(ctx, s, d.before+h.expected(c, d.events))
	}
	return r, time.Duration(r.Seconds*1e9) + time.Since(finished), err
}

// arrived waits until the expected events have passed, and no others.
func (h *harness) arrived(ctx context.Context, s *server, expected int) error {
	return s.wait(ctx, fmt.Sprintf("%d events at the sink", expected), func() (bool, error) {
		n, err := s.passed(ctx)
		if n > expected {
			err = fmt.Errorf("%d events have passed, only %d should", n, expected)
		}
		return n == expected, err
	})
}

// expected is how many of so many events pass.
func (h *harness) expected(c benchCase, events int) int {
	if c.filter {
		return kept(h.lines, events)
	}
	return events
}
