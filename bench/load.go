package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// loadReport is what the load generator prints.
type loadReport struct {
	Events  int     `json:"events"`  // accepted
	Retries int     `json:"retries"` // requests answered 429 or 503 and sent again
	Seconds float64 `json:"seconds"` // from the first byte sent to the last answer
	P50     float64 `json:"p50_ms"`  // from the first byte of a request to the end of its answer
	P99     float64 `json:"p99_ms"`
}

// load sends prebuilt requests over keep-alive connections, one request in flight on each.
type load struct {
	address  string
	requests [][]byte // header and body
	total    int64    // requests to send
	next     atomic.Int64
	retries  atomic.Int64
}

func runLoad(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	target := flags.String("url", "", "where to POST")
	conns := flags.Int("connections", 8, "connections")
	batch := flags.Int("batch", 500, "events a request")
	events := flags.Int("events", 1_000_000, "events to send, a multiple of the batch")
	if err := flags.Parse(args); err != nil {
		return err
	}
	u, err := url.Parse(*target)
	if err != nil {
		return err
	}
	l := &load{address: u.Host, requests: prebuilt(u, *batch), total: int64(*events / *batch)}
	report, err := l.run(ctx, *conns)
	if err != nil {
		return err
	}
	report.Events = int(l.total) * *batch
	return json.NewEncoder(os.Stdout).Encode(report)
}

// prebuilt returns the requests that send all lines once.
func prebuilt(u *url.URL, batch int) [][]byte {
	lines := makeLines()
	mediaType := "application/x-ndjson"
	if batch == 1 {
		mediaType = "application/json"
	}
	requests := make([][]byte, len(lines)/batch)
	for i := range requests {
		b := body(lines, i*batch, batch)
		head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n",
			u.RequestURI(), u.Host, mediaType, len(b))
		requests[i] = append([]byte(head), b...)
	}
	return requests
}

func (l *load) run(ctx context.Context, conns int) (r loadReport, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	times := make([][]time.Duration, conns)
	var workers sync.WaitGroup
	start := time.Now()
	for i := range conns {
		workers.Go(func() {
			var err error
			if times[i], err = l.work(ctx); err != nil {
				cancel(err)
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return r, err
	}
	r.Seconds, r.Retries = time.Since(start).Seconds(), int(l.retries.Load())
	all := slices.Concat(times...)
	slices.Sort(all)
	if len(all) > 0 {
		r.P50, r.P99 = milliseconds(all[len(all)/2]), milliseconds(all[len(all)*99/100])
	}
	return r, nil
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }

// work sends requests over one connection until there are no more, and returns how long each took.
func (l *load) work(ctx context.Context) (times []time.Duration, err error) {
	c := &client{address: l.address}
	defer c.close()
	for ctx.Err() == nil {
		n := l.next.Add(1) - 1
		if n >= l.total {
			return times, nil
		}
		took, err := l.deliver(ctx, c, l.requests[n%int64(len(l.requests))])
		if err != nil {
			return nil, err
		}
		times = append(times, took)
	}
	return nil, ctx.Err()
}

// again is how long a request that was answered 429 or 503 waits: not the second that Retry-After asks for, which would
// measure the wait and not the server.
const again = 2 * time.Millisecond

// deliver sends a request until it is taken, and returns how long that took at the last try.
func (l *load) deliver(ctx context.Context, c *client, request []byte) (time.Duration, error) {
	for {
		start := time.Now()
		status, err := c.post(request)
		switch {
		case err != nil:
			return 0, err
		case status/100 == 2 && status != 207:
			return time.Since(start), nil
		case status != 429 && status != 503:
			return 0, fmt.Errorf("the server answered %d", status)
		}
		l.retries.Add(1)
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// client is one keep-alive connection; it reads of an answer what it must.
type client struct {
	address string
	conn    net.Conn
	in      *bufio.Reader
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// post sends a request and returns the status of the answer. A server that refuses may close before it has read all:
// what counts then is the answer.
func (c *client) post(request []byte) (status int, err error) {
	if c.conn == nil {
		if c.conn, err = net.Dial("tcp", c.address); err != nil {
			return 0, err
		}
		c.in = bufio.NewReader(c.conn)
	}
	_, writeErr := c.conn.Write(request)
	status, last, err := readAnswer(c.in)
	if err != nil {
		return 0, errors.Join(writeErr, err)
	}
	if last || writeErr != nil {
		c.close()
	}
	return status, nil
}

// readAnswer reads one answer that has a Content-Length; last is set when the server closes behind it.
func readAnswer(in *bufio.Reader) (status int, last bool, err error) {
	for size := 0; ; {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, false, fmt.Errorf("read the answer: %w", err)
		}
		name, value, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(": "))
		switch {
		case status == 0:
			if len(line) < len("HTTP/1.1 200") {
				return 0, false, fmt.Errorf("no status line: %q", line)
			}
			status, err = strconv.Atoi(string(line[9:12]))
		case len(name) == 0:
			_, err = in.Discard(size)
			return status, last, err
		case bytes.EqualFold(name, []byte("Content-Length")):
			size, err = strconv.Atoi(string(value))
		case bytes.EqualFold(name, []byte("Connection")):
			last = bytes.EqualFold(value, []byte("close"))
		}
		if err != nil {
			return 0, false, fmt.Errorf("read the answer: %w", err)
		}
	}
}
