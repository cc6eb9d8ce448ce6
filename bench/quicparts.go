package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/headgate-io/headgate/sdk/session"
)

// Targets.
const (
	leastStream   = 0.85     // of the bytes per second of a bare receiver
	mostStreamCPU = 1.35     // of the CPU time of a bare receiver and of the gateway over HTTP/1.1 together
	leastRequests = 0.8      // of the requests per second of a bare handler
	mostLatency   = 2.0      // of the p99 over HTTP/1.1
	mostStalled   = 64 << 10 // bytes of a connection
)

// rounds measures cases one after the other, again and again, and returns the samples by name.
func (q *quicBench) alternate(ctx context.Context, events int, cases ...quicCase) (map[string][]quicSample, error) {
	all := map[string][]quicSample{}
	for range q.rounds {
		for _, c := range cases {
			s, err := q.measure(ctx, c, events)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			all[c.name] = append(all[c.name], s)
		}
	}
	return all, nil
}

// middle is the median over the rounds of a figure made of the samples of one.
func (q *quicBench) middle(of func(round int) float64) float64 {
	values := make([]float64, q.rounds)
	for i := range values {
		values[i] = of(i)
	}
	return median(values)
}

func (s *quicSample) bytesPerSecond() float64 { return float64(s.Bytes) / s.Seconds }

// streams compares sessions with a receiver that only copies. What the gateway does with events over HTTP/1.1 is measured,
// too: it is done with those of a session likewise.
func (q *quicBench) streams(ctx context.Context) error {
	s, err := q.alternate(ctx, q.events,
		quicCase{name: "copied", bare: true, load: []string{"-mode=raw"}},
		quicCase{name: "session", load: []string{"-mode=session"}},
		quicCase{name: "session, opaque", load: []string{"-mode=session", "-opaque"}},
		quicCase{name: "HTTP/1.1", h1: true, load: []string{"-mode=h1", "-level=1"}})
	if err != nil {
		return err
	}
	bare, json, opaque, http := s["copied"], s["session"], s["session, opaque"], s["HTTP/1.1"]
	q.target = append(q.target,
		verdict{"streams: bytes per second, JSON", q.middle(func(i int) float64 { return json[i].bytesPerSecond() / bare[i].bytesPerSecond() }), 0, leastStream, "of bare quic-go"},
		q.allowed(bare, json),
		verdict{"streams: bytes per second, opaque", q.middle(func(i int) float64 { return opaque[i].bytesPerSecond() / bare[i].bytesPerSecond() }), 0, leastStream, "of bare quic-go"},
		q.allowed(bare, opaque),
		verdict{"streams: CPU, JSON", q.middle(func(i int) float64 { return json[i].CPU / (bare[i].CPU + http[i].CPU) }), mostStreamCPU, 0,
			fmt.Sprintf("of a bare receiver (%.2f s per million) and HTTP/1.1 (%.2f)", q.middle(func(i int) float64 { return bare[i].CPU }), q.middle(func(i int) float64 { return http[i].CPU }))})
	return nil
}

// allowed is what the rate of a case beside that of the bare receiver can be when sender, server and sink share all cores and
// nothing else runs on them: the ratio of what they spend in all.
func (q *quicBench) allowed(bare, ours []quicSample) verdict {
	return verdict{"  what CPU time allows", q.middle(func(i int) float64 { return bare[i].All / ours[i].All }), 0, 0,
		fmt.Sprintf("where sender, server and sink share the cores: %.2f s per million in all, to %.2f",
			q.middle(func(i int) float64 { return bare[i].All }), q.middle(func(i int) float64 { return ours[i].All }))}
}

// requests compares HTTP/3 with a bare handler, one event a request.
func (q *quicBench) requests(ctx context.Context) error {
	load := []string{"-mode=h3", "-connections=64", "-batch=1"}
	s, err := q.alternate(ctx, q.singles, quicCase{name: "bare HTTP/3", bare: true, load: load}, quicCase{name: "HTTP/3", load: load})
	if err != nil {
		return err
	}
	bare, ours := s["bare HTTP/3"], s["HTTP/3"]
	q.target = append(q.target, verdict{"HTTP/3: requests per second", q.middle(func(i int) float64 { return bare[i].Seconds / ours[i].Seconds }), 0, leastRequests,
		"of bare quic-go"}, q.allowed(bare, ours))
	return nil
}

// stall measures what connections hold that stall, beside those that a bare receiver has.
func (q *quicBench) stall(ctx context.Context) error {
	ours, err := q.stalledBytes(ctx, quicCase{embedded: true, patient: true})
	if err != nil {
		return err
	}
	bare, err := q.stalledBytes(ctx, quicCase{bare: true})
	q.target = append(q.target, verdict{"stalled: memory", ours / 1024, mostStalled / 1024, 0, fmt.Sprintf("KiB a connection (of a bare receiver: %.1f)", bare/1024)})
	return err
}

// settles is how long a crowd may take until memory has settled. So large is the frame in which it stops that it may take longer to come.
const (
	settles = 3 * time.Second
	stalls  = 8 << 20
)

// stalledBytes opens connections, each with a stream on which a part of a frame comes and then nothing.
func (q *quicBench) stalledBytes(ctx context.Context, c quicCase) (each float64, err error) {
	p, address, err := q.start(ctx, c, sinkClient{})
	if err != nil {
		return 0, err
	}
	defer p.stop()
	if _, err := p.idleCPU(ctx); err != nil {
		return 0, err
	}
	before, err := p.resident()
	if err != nil {
		return 0, err
	}
	to, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return 0, err
	}
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	transport := &quic.Transport{Conn: conn}
	defer transport.Close()
	for range q.stalled {
		if err := stallOne(ctx, transport, to, c.bare); err != nil {
			return 0, err
		}
	}
	select {
	case <-time.After(settles):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if _, err := p.idleCPU(ctx); err != nil {
		return 0, err
	}
	after, err := p.resident()
	return float64(after-before) / float64(q.stalled), err
}

func stallOne(ctx context.Context, transport *quic.Transport, to net.Addr, bare bool) error {
	secure := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{session.Protocol}, ServerName: "localhost"}
	if bare {
		secure.NextProtos[0] = bareProtocol
	}
	conn, err := transport.Dial(ctx, to, secure, &quic.Config{KeepAlivePeriod: 10 * time.Second})
	if err != nil {
		return err
	}
	str, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	if !bare {
		if _, err := str.Write((&session.Hello{Version: session.Version, Stream: streamName}).Append(nil)); err != nil {
			return err
		}
		if err := (&talk{in: bufio.NewReader(str)}).expect(session.TypeWelcome, &session.Welcome{}); err != nil {
			return err
		}
	}
	head := session.AppendEventsHead(nil, session.EventsHead{First: 1, Count: 1, Framing: session.Lines}, stalls)
	_, err = str.Write(append(head, `{"half":"of an event`...))
	return err
}

// resident is VmRSS of the process, in bytes.
func (p *process) resident() (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	size, _, _ := strings.Cut(strings.TrimSpace(rest), " kB")
	n, err := strconv.Atoi(size)
	return n << 10, err
}

// host is where the server listens for HTTP/1.1.
func (s *server) host() string {
	if u, err := url.Parse(s.url); err == nil {
		return u.Host
	}
	return ""
}
