package client

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/headgate-io/headgate/sdk/session"
)

// Batch is the events of one Send.
type Batch struct {
	First, Count uint64 // sequence of the first event, and how many there are

	body []byte   // as EVENTS carries them
	ends []uint32 // of the events in body, for HTTP

	once    sync.Once
	done    chan struct{}
	result  Result
	known   bool // result is there; used by the goroutine that has the connection
	rejects []Reject
	err     error
}

// Result says what has become of a batch. The counts add up to its events.
type Result struct {
	Accepted, Filtered, Rejected, Duplicates, DeadLettered int

	Settled int           // events of which the gateway knows, after it was killed, only that they had their outcome
	Level   session.Level // how far they have come; Durable where Delivered was asked for: safe, and not to be sent again
	Rejects []Reject      // the first 100 that were rejected
}

// Reject says why an event is refused.
type Reject struct {
	Index     int // in the batch
	Code      string
	Detail    string
	Retryable bool // the same event can be taken later
}

var errNewline = errors.New("client: an event of Lines contains a newline, or is blank; use JSON")

// newBatch copies events into a body.
func newBatch(f session.Framing, events [][]byte) (*Batch, error) {
	b := &Batch{Count: uint64(len(events)), done: make(chan struct{}), ends: make([]uint32, len(events))}
	size := 0
	for _, e := range events {
		size += len(e) + binary.MaxVarintLen32
	}
	b.body = make([]byte, 0, size)
	for i, e := range events {
		if f == session.Lines {
			if bytes.IndexByte(e, '\n') >= 0 || len(bytes.TrimSpace(e)) == 0 {
				return nil, errNewline
			}
			b.body = append(append(b.body, e...), '\n')
		} else {
			b.body = append(binary.AppendUvarint(b.body, uint64(len(e))), e...)
		}
		b.ends[i] = uint32(len(b.body))
	}
	return b, nil
}

func (b *Batch) last() uint64 { return b.First + b.Count - 1 }

// Done is closed when the outcome is known.
func (b *Batch) Done() <-chan struct{} { return b.done }

// Wait returns the outcome. An *UnsettledError says that it is not known whether the events are stored; any other error,
// that the batch was refused as a whole, or that ctx ended first.
func (b *Batch) Wait(ctx context.Context) (Result, error) {
	select {
	case <-b.done:
		return b.result, b.err
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}

func (b *Batch) settle(r Result, err error) {
	b.once.Do(func() {
		if err == nil && !b.known {
			r = Result{Settled: int(b.Count)}
		}
		b.result, b.err = r, err
		close(b.done)
	})
}
