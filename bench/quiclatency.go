package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Latency is measured in short turns of HTTP/1.1 and sessions on one gateway, so that what the disk and the machine do meets both.
const (
	turnSeconds = 4
	turnsOfEach = 3 // in a round
	warming     = 2 // turns of each before: a new gateway finds the heavy keys and splits them, and events wait for that, whatever they come over
)

// latency compares the time to a durable acknowledgement, at half of what HTTP/1.1 carries.
func (q *quicBench) latency(ctx context.Context) error {
	common := []string{"-level=2", "-batch=100", "-connections=8"}
	full, err := q.measure(ctx, quicCase{name: "durable, full", embedded: true, h1: true, load: append(common, "-mode=h1")}, q.events/5)
	if err != nil {
		return err
	}
	rate := float64(full.Events) / full.Seconds / 2
	common = append(common, "-rate="+strconv.Itoa(int(rate)))
	q.starts++
	server, err := gateway{program: q.program, folder: filepath.Join(q.folder, strconv.Itoa(q.starts)), embedded: true}.start(ctx, sinkClient{})
	if err != nil {
		return err
	}
	defer server.stop()
	turn := func(mode string) (quicReport, error) {
		c, address := quicCase{load: append(common[:len(common):len(common)], "-mode="+mode)}, server.quic
		if mode == "h1" {
			address = server.host()
		}
		return q.drive(ctx, c, address, int(rate)*turnSeconds)
	}
	for range warming {
		for _, mode := range []string{"h1", "session"} {
			if _, err := turn(mode); err != nil {
				return fmt.Errorf("warm up: %w", err)
			}
		}
	}
	var ratios, h1 []float64
	for range q.rounds * turnsOfEach {
		http, err := turn("h1")
		if err != nil {
			return err
		}
		ours, err := turn("session")
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "durable at %.0f events/s: HTTP/1.1 p50 %.2f ms, p99 %.2f ms; sessions p50 %.2f ms, p99 %.2f ms\n", rate, http.P50, http.P99, ours.P50, ours.P99)
		ratios, h1 = append(ratios, ours.P99/http.P99), append(h1, http.P99)
	}
	q.target = append(q.target, verdict{"durable: p99 at half load", median(ratios), mostLatency, 0, fmt.Sprintf("of HTTP/1.1 (%.1f ms at %.0f events/s)", median(h1), rate)})
	return nil
}
