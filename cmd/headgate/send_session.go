package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/client"
	"github.com/headgate-io/headgate/sdk/session"
)

// talk sends a file in a session over QUIC: many batches in flight, whose outcomes come in order.
type talk struct {
	*sender
	client *client.Client
	flying []*flying // handed over, oldest first
	handed int       // events
	notice atomic.Pointer[string]
	overTo string                 // where it goes over HTTP, until that is said
	over   atomic.Pointer[string] // why it does
	lost   atomic.Pointer[string] // what was acknowledged and is lost, until that is said
}

// flying is a batch whose outcome is not known yet.
type flying struct {
	*batch
	sent  *client.Batch
	since time.Time // when its events were first handed over
}

// mostFlying bounds what is remembered of the file at a time.
const mostFlying = 256

// framingOf is how the events of a file of some type are sent in a session.
func framingOf(mediaType string) (session.Framing, error) {
	name, _, _ := strings.Cut(strings.ToLower(mediaType), ";")
	switch strings.TrimSpace(name) {
	case ndjson, "application/ndjson", "application/jsonl", "application/jsonlines":
		return session.JSON, nil
	case "application/vnd.headgate.events":
		return session.Opaque, nil
	}
	return 0, usagef("--proto quic sends application/x-ndjson and application/vnd.headgate.events, not %q; use --proto h3", mediaType)
}

// send sends the batches of a file.
func (r *route) send(ctx context.Context, s *sender, source batches) error {
	if r.proto != "quic" {
		return s.sendAll(ctx, source)
	}
	t, err := r.talk(s)
	if err != nil {
		return err
	}
	return t.sendAll(ctx, source)
}

// talk opens a session. Where UDP does not come through, it goes over HTTP at --url, if that is the same host.
func (r *route) talk(s *sender) (*talk, error) {
	to, err := r.udp()
	if err != nil {
		return nil, err
	}
	framing, err := framingOf(s.options.mediaType)
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(to.base)
	if err != nil {
		return nil, usageError(err)
	}
	level, _ := event.ParseLevel(s.options.ack)
	t := &talk{sender: s}
	cfg := client.Config{Address: at.Host, Stream: s.options.stream, Token: to.token, Level: session.Level(level), Framing: framing,
		TLS: to.tls, Session: s.name, Notice: t.noted}
	if s.options.ordering != "" {
		cfg.Fields = append(cfg.Fields, session.Field{Name: orderingField, Value: s.options.ordering})
	}
	if tcp, err := r.tcp.dial(); err == nil {
		if u, err := url.Parse(tcp.base); err == nil && u.Hostname() == at.Hostname() {
			cfg.HTTP, t.overTo = tcp.base, tcp.base
		}
	}
	t.client, err = client.New(cfg)
	return t, err
}

// noted keeps why events wait, or go over HTTP. Other goroutines call it.
func (t *talk) noted(code, detail string) {
	said := code + ": " + detail
	t.notice.Store(&said)
	switch code {
	case "udp":
		t.over.CompareAndSwap(nil, &detail)
	case session.EventsLost:
		t.lost.Store(&detail)
	}
}

// sayNoted tells once that events go over HTTP, and each time that some are lost.
func (t *talk) sayNoted() {
	if what := t.lost.Swap(nil); what != nil {
		t.progress.clear()
		fmt.Fprintf(t.stderr, "headgate send: events_lost: %s\n", *what)
	}
	if why := t.over.Load(); why != nil && t.overTo != "" {
		t.progress.clear()
		fmt.Fprintf(t.stderr, "headgate send: %s at %s (--quic-url says where QUIC is spoken)\n", *why, t.overTo)
		t.overTo = ""
	}
}

// sendAll sends until the file ends or the session fails; s.total says how far it came.
func (t *talk) sendAll(ctx context.Context, source batches) error {
	start := t.clock.now()
	defer func() { t.total.Seconds = seconds(t.clock.now().Sub(start)) }()
	defer t.progress.clear()
	err := t.handOver(ctx, source, start)
	for err == nil && len(t.flying) > 0 {
		err = t.settle(ctx)
	}
	if err == nil {
		err = t.client.Close(ctx)
	} else {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		t.client.Close(ended)
	}
	if err != nil {
		return err
	}
	return t.verdict()
}

func (t *talk) handOver(ctx context.Context, source batches, start time.Time) error {
	for {
		b, err := source.next()
		if b != nil && len(b.starts) > 0 {
			if failure := t.hand(ctx, &flying{batch: b, since: t.clock.now()}); failure != nil {
				return failure
			}
			t.progress.show(t.total.Sent, b, t.clock.now())
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w; what comes before it was sent", t.file, err)
		}
		if t.options.rate > 0 {
			due := start.Add(time.Duration(float64(t.handed) / t.options.rate * float64(time.Second)))
			if wait := due.Sub(t.clock.now()); wait > 0 && t.clock.pause(ctx, wait) != nil {
				return errors.New("interrupted")
			}
		}
	}
}

// hand hands a batch over, when the outcome of enough others is known.
func (t *talk) hand(ctx context.Context, f *flying) error {
	for len(t.flying) > 0 {
		select {
		case <-t.flying[0].sent.Done():
		default:
			if len(t.flying) < mostFlying {
				return t.send(ctx, f)
			}
		}
		if err := t.settle(ctx); err != nil {
			return err
		}
	}
	return t.send(ctx, f)
}

func (t *talk) send(ctx context.Context, f *flying) (err error) {
	events := make([][]byte, len(f.starts))
	for i := range events {
		events[i] = f.event(i)
	}
	limited, cancel := context.WithTimeout(ctx, max(t.options.timeout, time.Second))
	defer cancel()
	if f.sent, err = t.client.Send(limited, events...); err != nil {
		return t.stopped(f, err)
	}
	t.handed += len(events)
	t.flying = append(t.flying, f)
	return nil
}

// settle waits for the oldest outcome, counts it, and sends again what can be taken later.
func (t *talk) settle(ctx context.Context) error {
	f := t.flying[0]
	limited, cancel := context.WithTimeout(ctx, max(t.options.timeout, time.Second))
	defer cancel()
	r, err := f.sent.Wait(limited)
	t.sayNoted()
	if err != nil {
		return t.stopped(f, err)
	}
	t.flying = t.flying[1:]
	a := answer{Accepted: r.Accepted + r.Settled, Filtered: r.Filtered, Rejected: r.Rejected, Duplicates: r.Duplicates, DeadLettered: r.DeadLettered}
	for _, no := range r.Rejects {
		a.Errors = append(a.Errors, eventError{Index: no.Index, Code: no.Code, Detail: no.Detail, Retryable: no.Retryable})
	}
	if r.Settled > 0 {
		t.progress.clear()
		fmt.Fprintf(t.stderr, "headgate send: of %d events the gateway has forgotten what became of each; they are counted as accepted\n", r.Settled)
	}
	if level, _ := event.ParseLevel(t.options.ack); level == event.Delivered && r.Level < session.Delivered && r.Settled == 0 {
		t.undelivered += r.Accepted
	}
	later := a.later()
	if len(later) == 0 || t.clock.now().Sub(f.since) > t.options.timeout {
		return t.count(f.batch, a)
	}
	if err := t.count(f.batch, a.without(len(later))); err != nil {
		return err
	}
	if t.clock.pause(ctx, backoff(3, outcome{}, t.clock.random())) != nil {
		return errors.New("interrupted")
	}
	return t.send(ctx, &flying{batch: f.pick(later), since: f.since})
}

// stopped says where in the file the session has ended, and why.
func (t *talk) stopped(f *flying, err error) error {
	switch said := t.notice.Load(); {
	case errors.Is(err, context.DeadlineExceeded) && said != nil:
		err = fmt.Errorf("given up after %v: %s", t.options.timeout, *said)
		if strings.HasPrefix(*said, "connection: ") {
			err = fmt.Errorf("%w; is the gateway running? (headgate serve, or give --quic-url and --url)", err)
		}
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("given up after %v", t.options.timeout)
	case errors.Is(err, context.Canceled):
		err = errors.New("interrupted; what is in flight may be stored")
	}
	return fmt.Errorf("stopped before %s: %w", t.place(f.batch, 0), err)
}
