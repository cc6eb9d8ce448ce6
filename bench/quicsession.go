package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/headgate-io/headgate/sdk/session"
)

// talk is one session, which sends as far as it has credit and hears what is acknowledged.
type talk struct {
	l   *quicLoad
	str *quic.Stream
	in  *bufio.Reader

	mu     sync.Mutex // guards the rest
	more   chan struct{}
	credit int64
	turns  []time.Time // of frames that are not acknowledged
	acked  uint64
	times  []time.Duration
}

func (l *quicLoad) session(ctx context.Context, _ int) ([]time.Duration, error) {
	conn, str, err := dialQUIC(ctx, l.address, session.Protocol)
	if err != nil {
		return nil, err
	}
	defer conn.CloseWithError(0, "")
	t := &talk{l: l, str: str, in: bufio.NewReader(str), more: make(chan struct{}, 1)}
	hello := session.Hello{Version: session.Version, Stream: streamName, Level: l.level}
	if _, err := str.Write(hello.Append(nil)); err != nil {
		return nil, err
	}
	var w session.Welcome
	if err := t.expect(session.TypeWelcome, &w); err != nil {
		return nil, err
	}
	t.credit = int64(w.Credit)
	heard := make(chan error, 1)
	go func() { heard <- t.hear() }()
	sendErr := t.send(ctx)
	if sendErr != nil {
		conn.CloseWithError(0, "")
	}
	return t.times, errors.Join(sendErr, <-heard)
}

func (t *talk) expect(want session.Type, f session.Frame) error {
	kind, length, err := session.ReadHead(t.in)
	if err != nil {
		return err
	}
	payload, err := session.ReadControl(t.in, length, nil)
	if err != nil {
		return err
	}
	if kind != want {
		return fmt.Errorf("frame %d instead of %d: %q", kind, want, payload)
	}
	return f.Parse(payload)
}

func (t *talk) send(ctx context.Context) error {
	began, sent := time.Now(), uint64(0)
	for {
		body, turn, ok := t.l.take(ctx, began)
		if !ok {
			break
		}
		if err := t.allowed(ctx, int64(len(body)+session.MostHead), turn); err != nil {
			return err
		}
		if _, err := t.str.Write(t.l.head(sent, len(body))); err != nil {
			return err
		}
		if _, err := t.str.Write(body); err != nil {
			return err
		}
		sent += uint64(t.l.batch)
	}
	if _, err := t.str.Write((&session.Fin{}).Append(nil)); err != nil {
		return err
	}
	return t.str.Close()
}

// allowed waits for credit, and notes when the frame had its turn.
func (t *talk) allowed(ctx context.Context, size int64, turn time.Time) error {
	for {
		t.mu.Lock()
		ok := t.credit > 0
		if ok {
			t.credit -= size
			t.turns = append(t.turns, turn)
		}
		t.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-t.more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hear reads until FIN.
func (t *talk) hear() error {
	var room []byte
	for {
		kind, length, err := session.ReadHead(t.in)
		if err != nil {
			return err
		}
		if room, err = session.ReadControl(t.in, length, room); err != nil {
			return err
		}
		switch kind {
		case session.TypeFin:
			return nil
		case session.TypeCredit:
			var c session.Credit
			err = c.Parse(room)
			t.mu.Lock()
			t.credit += int64(c.Bytes)
			t.mu.Unlock()
			select {
			case t.more <- struct{}{}:
			default:
			}
		case session.TypeAck:
			var a session.Ack
			if err = a.Parse(room); a.Level == t.l.level {
				t.ack(a.UpTo)
			}
		case session.TypeReject, session.TypeGoAway, session.TypeError:
			err = fmt.Errorf("frame %d: %q", kind, room)
		}
		if err != nil {
			return err
		}
	}
}

func (t *talk) ack(upTo uint64) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for ; t.acked < upTo && len(t.turns) > 0; t.acked += uint64(t.l.batch) {
		t.times = append(t.times, now.Sub(t.turns[0]))
		t.turns = t.turns[1:]
	}
}
