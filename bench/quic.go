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
	"text/tabwriter"
)

// quicBench measures what comes over QUIC beside bare quic-go.
type quicBench struct {
	program         string
	events, singles int
	rounds, stalled int
	only            string
	check           bool

	folder string
	starts int
	target []verdict
}

// verdict is a figure beside its target, or one that explains others and has none.
type verdict struct {
	what     string
	measured float64
	most     float64 // 0: none
	least    float64 // 0: none
	unit     string
}

func (v verdict) missed() bool {
	return v.most > 0 && v.measured > v.most || v.least > 0 && v.measured < v.least
}

func (v verdict) String() string {
	bound, word := "", "met"
	switch {
	case v.least > 0:
		bound = fmt.Sprintf(">= %.2f", v.least)
	case v.most > 0:
		bound = fmt.Sprintf("<= %.2f", v.most)
	default:
		word = ""
	}
	if v.missed() {
		word = "MISSED"
	}
	return fmt.Sprintf("%s\t%.2f\t%s\t%s\t%s\t", v.what, v.measured, bound, v.unit, word)
}

// quicSample is one measurement.
type quicSample struct {
	quicReport
	CPU    float64 // seconds of the server per million events
	All    float64 // the same of the load generator and the sink too
	Before int     // resident bytes of the server before, and at its peak
	Peak   int
}

func runQUIC(ctx context.Context, args []string) (err error) {
	q := &quicBench{}
	flags := flag.NewFlagSet("quic", flag.ContinueOnError)
	flags.StringVar(&q.program, "headgate", "bin/headgate", "the gateway")
	flags.IntVar(&q.events, "events", 2_000_000, "events of a measurement in frames of 500")
	flags.IntVar(&q.singles, "singles", 60_000, "requests of a measurement of HTTP/3")
	flags.IntVar(&q.rounds, "rounds", 3, "measurements of each case; medians of ratios count")
	flags.IntVar(&q.stalled, "stalled", 1000, "connections that stall")
	flags.StringVar(&q.only, "only", "", "parts to measure, with a comma between: streams, requests, latency, stalled; empty: all")
	flags.BoolVar(&q.check, "check", false, "exit 1 when a target is missed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if runtime.GOOS != "linux" {
		return errors.New("CPU time and memory of processes are read from /proc: this runs on Linux only")
	}
	if q.folder, err = os.MkdirTemp("", "headgate-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(q.folder)
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{"streams", q.streams}, {"requests", q.requests}, {"latency", q.latency}, {"stalled", q.stall}} {
		if q.only != "" && !slices.Contains(strings.Split(q.only, ","), part.name) {
			continue
		}
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return q.publish()
}

func (q *quicBench) publish() error {
	fmt.Println(machine())
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "figure\tmeasured\ttarget\tunit\t\t")
	missed := false
	for _, v := range q.target {
		fmt.Fprintln(w, v)
		missed = missed || v.missed()
	}
	w.Flush()
	if missed && q.check {
		return errors.New("targets are missed")
	}
	return nil
}

// quicCase is a server and how it is driven.
type quicCase struct {
	name     string
	bare     bool
	embedded bool
	h1       bool // the load goes to the HTTP/1.1 listener
	patient  bool // clients that stall are not cut off within a minute
	load     []string
}

// measure starts a server, warms it up, and drives it with so many events.
func (q *quicBench) measure(ctx context.Context, c quicCase, events int) (s quicSample, err error) {
	sinkProcess, err := startRole(ctx, "sink")
	if err != nil {
		return s, err
	}
	defer sinkProcess.stop()
	sink := sinkClient{url: "http://" + sinkProcess.address + "/events"}
	p, address, err := q.start(ctx, c, sink)
	if err != nil {
		return s, err
	}
	defer p.stop()
	if err := sink.reset(ctx, false); err != nil {
		return s, err
	}
	if _, err := q.drive(ctx, c, address, max(events/10, 1)); err != nil {
		return s, fmt.Errorf("warm up: %w", err)
	}
	before, err := p.idleCPU(ctx)
	if err != nil {
		return s, err
	}
	taken, err := sinkProcess.cpu()
	if err != nil {
		return s, err
	}
	if s.quicReport, err = q.drive(ctx, c, address, events); err != nil {
		return s, err
	}
	after, err := p.idleCPU(ctx)
	if err != nil {
		return s, err
	}
	passed, err := sinkProcess.cpu()
	s.CPU = (after - before) / float64(s.Events) * 1e6
	s.All = s.CPU + (s.Spent+passed-taken)/float64(s.Events)*1e6
	fmt.Fprintf(os.Stderr, "%-16s %8.0f events/s %7.1f MB/s %6.3f CPU s per million, p50 %.2f ms, p99 %.2f ms\n", c.name,
		float64(s.Events)/s.Seconds, float64(s.Bytes)/s.Seconds/1e6, s.CPU, s.P50, s.P99)
	return s, err
}

func (q *quicBench) start(ctx context.Context, c quicCase, sink sinkClient) (*process, string, error) {
	if c.bare {
		p, err := startRole(ctx, "quicfloor")
		if err != nil {
			return nil, "", err
		}
		return p, p.address, nil
	}
	q.starts++
	g := gateway{program: q.program, folder: filepath.Join(q.folder, strconv.Itoa(q.starts)), embedded: c.embedded, patient: c.patient}
	server, err := g.start(ctx, sink)
	if err != nil {
		return nil, "", err
	}
	if c.h1 {
		return server.process, server.host(), nil
	}
	return server.process, server.quic, nil
}

func (q *quicBench) drive(ctx context.Context, c quicCase, address string, events int) (r quicReport, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	var out bytes.Buffer
	p, err := start(ctx, &out, self, append([]string{"quicload", "-address=" + address, "-events=" + strconv.Itoa(events)}, c.load...)...)
	if err != nil {
		return r, err
	}
	if <-p.ended; p.err != nil {
		return r, p.failure()
	}
	return r, json.Unmarshal(out.Bytes(), &r)
}
