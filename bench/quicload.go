package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/headgate-io/headgate/sdk/session"
)

// quicLoad sends the lines over QUIC, or over HTTP/1.1 at the same pace.
type quicLoad struct {
	mode    string
	address string
	level   session.Level
	conns   int
	batch   int // events a frame or request
	total   int // frames or requests of all connections
	opaque  bool
	rate    float64 // events per second of all connections; 0: as fast as it goes

	bodies [][]byte
	bytes  atomic.Int64
	next   atomic.Int64
}

// sender sends what is left of the load over connection i, and returns how long each frame or request took.
type sender func(ctx context.Context, i int) ([]time.Duration, error)

func runQUICLoad(ctx context.Context, args []string) error {
	l := &quicLoad{}
	flags := flag.NewFlagSet("quicload", flag.ContinueOnError)
	flags.StringVar(&l.mode, "mode", "session", "raw (a stream that nobody looks into), session, h3, h1")
	flags.StringVar(&l.address, "address", "", "HOST:PORT")
	flags.IntVar(&l.conns, "connections", 4, "connections; of h3, requests at a time over 4 connections")
	flags.IntVar(&l.batch, "batch", 500, "events a frame or request")
	flags.Float64Var(&l.rate, "rate", 0, "events per second; 0: as fast as it goes")
	flags.BoolVar(&l.opaque, "opaque", false, "events are bytes and not JSON")
	level := flags.Uint64("level", uint64(session.Accepted), "of an acknowledgement")
	events := flags.Int("events", 1_000_000, "events to send")
	if err := flags.Parse(args); err != nil {
		return err
	}
	l.level, l.total = session.Level(*level), *events/l.batch
	l.prepare()
	modes := map[string]sender{"raw": l.raw, "session": l.session, "h1": l.http1}
	if l.mode == "h3" {
		h3, end := l.http3()
		defer end()
		modes["h3"] = h3
	}
	send := modes[l.mode]
	if send == nil {
		return fmt.Errorf("no mode %q", l.mode)
	}
	report, err := l.run(ctx, send)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

// quicReport is what the load generator prints.
type quicReport struct {
	loadReport
	Bytes int64   `json:"bytes"` // of bodies
	Spent float64 `json:"cpu"`   // seconds of CPU time of the load generator, between the first and the last frame
}

// prepare makes frames, or bodies, that hold all lines once.
func (l *quicLoad) prepare() {
	lines := makeLines()
	l.bodies = make([][]byte, len(lines)/l.batch)
	for i := range l.bodies {
		if !l.opaque {
			l.bodies[i] = body(lines, i*l.batch, l.batch)
			continue
		}
		for k := range l.batch {
			text := lines[i*l.batch+k].text
			l.bodies[i] = append(append(l.bodies[i], byte(len(text)&0x7f|0x80), byte(len(text)>>7)), text...) // a varint of two bytes
		}
	}
}

func (l *quicLoad) run(ctx context.Context, send sender) (r quicReport, err error) {
	times, errs := make([][]time.Duration, l.conns), make([]error, l.conns)
	var workers sync.WaitGroup
	start, before := time.Now(), ownCPU()
	for i := range l.conns {
		workers.Go(func() { times[i], errs[i] = send(ctx, i) })
	}
	workers.Wait()
	r.Events, r.Bytes, r.Seconds = l.total*l.batch, l.bytes.Load(), time.Since(start).Seconds()
	r.Spent = ownCPU() - before
	all := slices.Concat(times...)
	slices.Sort(all)
	if len(all) > 0 {
		r.P50, r.P99 = milliseconds(all[len(all)/2]), milliseconds(all[len(all)*99/100])
	}
	return r, errors.Join(errs...)
}

// take returns the next body, and when its turn was: who is late does not shift those behind.
func (l *quicLoad) take(ctx context.Context, began time.Time) (body []byte, turn time.Time, ok bool) {
	n := l.next.Add(1) - 1
	if n >= int64(l.total) {
		return nil, turn, false
	}
	body, turn = l.bodies[n%int64(len(l.bodies))], time.Now()
	if l.rate > 0 {
		turn = began.Add(time.Duration(float64(n) * float64(l.batch) / l.rate * 1e9))
		timer := time.NewTimer(time.Until(turn))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, turn, false
		}
	}
	l.bytes.Add(int64(len(body)))
	return body, turn, true
}

// head is that of the next EVENTS frame behind some events.
func (l *quicLoad) head(sent uint64, size int) []byte {
	h := session.EventsHead{First: sent + 1, Count: uint64(l.batch), Framing: session.Lines}
	if l.opaque {
		h.Framing = session.Opaque
	}
	return session.AppendEventsHead(nil, h, size)
}

func dialQUIC(ctx context.Context, address, protocol string) (*quic.Conn, *quic.Stream, error) {
	conn, err := quic.DialAddr(ctx, address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}, nil)
	if err != nil {
		return nil, nil, err
	}
	str, err := conn.OpenStreamSync(ctx)
	return conn, str, err
}

// raw sends what a session would to somebody who only copies it.
func (l *quicLoad) raw(ctx context.Context, _ int) ([]time.Duration, error) {
	conn, str, err := dialQUIC(ctx, l.address, bareProtocol)
	if err != nil {
		return nil, err
	}
	defer conn.CloseWithError(0, "")
	began, sent := time.Now(), uint64(0)
	for {
		body, _, ok := l.take(ctx, began)
		if !ok {
			break
		}
		if _, err := str.Write(l.head(sent, len(body))); err != nil {
			return nil, err
		}
		if _, err := str.Write(body); err != nil {
			return nil, err
		}
		sent += uint64(l.batch)
	}
	str.Close()
	_, err = io.ReadAll(str)
	return nil, err
}

// http3 returns a sender of requests.
func (l *quicLoad) http3() (sender, func()) {
	const connections = 4
	clients, end := [connections]*http.Client{}, func() {}
	for i := range clients {
		tr := &http3.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true}
		before := end
		clients[i], end = &http.Client{Transport: tr}, func() { tr.Close(); before() }
	}
	mediaType := "application/x-ndjson"
	if l.batch == 1 {
		mediaType = "application/json"
	}
	return func(ctx context.Context, i int) (times []time.Duration, err error) {
		began := time.Now()
		for {
			body, turn, ok := l.take(ctx, began)
			if !ok {
				return times, ctx.Err()
			}
			resp, err := clients[i%connections].Post("https://"+l.address+eventsPath, mediaType, bytes.NewReader(body))
			if err != nil {
				return nil, err
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusAccepted {
				return nil, fmt.Errorf("the server answered %d", resp.StatusCode)
			}
			times = append(times, time.Since(turn))
		}
	}, end
}

// http1 sends requests of a connection one after the other.
func (l *quicLoad) http1(ctx context.Context, _ int) (times []time.Duration, err error) {
	c := &client{address: l.address}
	defer c.close()
	ack := [...]string{"", "accepted", "durable", "delivered"}[l.level&3]
	host, _, err := net.SplitHostPort(l.address)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for {
		body, turn, ok := l.take(ctx, began)
		if !ok {
			return times, ctx.Err()
		}
		request := fmt.Appendf(nil, "POST /v1/streams/%s/events?ack=%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n",
			streamName, ack, host, len(body))
		status, err := c.post(append(request, body...))
		if err != nil {
			return nil, err
		}
		if status/100 != 2 || status == 207 {
			return nil, fmt.Errorf("the server answered %d", status)
		}
		times = append(times, time.Since(turn))
	}
}
