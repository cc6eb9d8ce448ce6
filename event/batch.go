package event

import (
	"slices"
	"time"
	"unsafe"
)

// Syntax is what events of a batch are checked as, on arrival and again when a plugin replaced one.
type Syntax uint8

// Opaque bytes are not checked; Text is checked for UTF-8; JSON is checked whole.
const (
	Opaque Syntax = iota
	Text
	JSON
)

// MaxErrors is how many refused events an answer describes; the rest is only counted (errors_truncated).
const MaxErrors = 100

// Batch is the events of one request over one buffer. It is owned by the goroutine that serves the request
// until Accept returns; whoever needs bytes for longer copies them.
type Batch struct {
	Stream string
	ID     string // batch_id in the answer, 26 characters
	Syntax Syntax

	Caller      []byte // who was authenticated, empty for nobody: nobody else's events can be repetitions of these
	Owner       uint64 // a hash of who is authenticated, or else of its network: whose share is taken of what is remembered
	Producer    []byte // who sent it: orders events in `source` streams
	Headers     []Attr // the request's headers, names in lower case, in the order they came
	TraceParent []byte // W3C traceparent, empty for none
	TraceState  []byte // W3C tracestate, empty for none
	RequestID   string // X-Request-Id as the client sent it, empty for none
	Arrived     int64  // unix nanoseconds

	Ack           Level // level asked for, already within the stream's bounds
	Class         Class // asked for, stricter than the stream's
	Strict        bool  // one rejected event refuses the whole batch
	DecodedBefore bool  // by an attempt whose batch was given up: what decoding counts is counted already
	Trial         bool  // a dry run: nothing is stored, and Traces say what happens to each event
	HasIDs        bool  // some of its events do
	Replay        bool  // letters that are taken again: their ids are not looked up
	NoNewlines    bool  // no event contains one: it was framed by them

	// Session and First name the events that bring no id: those of a session are numbered, from First. Empty: there is none.
	Session string
	First   uint64

	// Reached, when it is set, is called by Accept, perhaps on another goroutine and always before it returns: with Accepted
	// once all events are in the lanes, so that what is accepted then comes behind them; with Durable where Delivered was
	// asked for.
	Reached func(Level)

	Key    []byte // key for events that got none (Headgate-Key); meaningful when HasKey
	HasKey bool
	Common []byte // the key that events share which have none of their own, a view of the request; nil for none

	TableVersion uint64 // routing table by which the events were assigned
	Chain        string // digest of the plugin chain that processed the batch, empty for none

	// Late, when it is set, is called once after an Accept that failed with Stored "unknown", as soon as the outcome is
	// known or certain never to be: with a batch that has the verdicts and errors of this one and no data, and the error
	// that Accept would have returned. It is called by any goroutine, perhaps before Accept returns, and must be quick.
	Late func(late *Batch, err error)
	// Safe, when it is set, is called once after an Accept that succeeded, when everything that it stored is durable; never
	// when that can't be found out. It is called by any goroutine, perhaps before Accept returns, and must be quick.
	Safe func()

	Events []Event
	Errors []Error // the first MaxErrors refused events, in order of their discovery

	RetryAfter time.Duration // when what was refused for its rate can be taken, at the earliest; 0: nothing was

	Traces  []Trace  // of a trial, one for each event
	Letters []Letter // why events were set aside, one for each with the verdict DeadLettered

	replaced [][]byte // by event, what it was before Replace; empty when none was replaced

	Body  []byte // the decoded request body, the buffer that Event.Data points into; reused with the batch
	Payer Payer  // pays for all that grows with the number of events and of their attributes; nil: nobody does

	pile   *pile[Event] // what Events was taken from by Room; nil: it is somebody's own
	paid   bool         // it is paid for
	arena  arena
	attrs  attrs // what Attrs of events are parts of
	unpaid *Problem
}

// Error describes one refused event.
type Error struct {
	Index  int // position in the request
	Offset int // byte in the decoded body
	Code   Code
	Detail string
}

// Counts are the five sums over the verdicts of a batch; they add up to the number of its events.
type Counts struct{ Accepted, Filtered, Rejected, Duplicates, DeadLettered int }

// Counts sums up the verdicts.
func (b *Batch) Counts() (c Counts) {
	for i := range b.Events {
		switch b.Events[i].Verdict {
		case Keep:
			c.Accepted++
		case Filtered:
			c.Filtered++
		case Rejected:
			c.Rejected++
		case Duplicate:
			c.Duplicates++
		case DeadLettered:
			c.DeadLettered++
		}
	}
	return c
}

// Reach calls Reached.
func (b *Batch) Reach(l Level) {
	if b.Reached != nil {
		b.Reached(l)
	}
}

// Letter says why an event goes to the dead letter.
type Letter struct {
	Index          int // position in the request
	Code           Code
	Detail         string
	Plugin, Digest string // what failed on it, with its version
}

const letterSize = int64(unsafe.Sizeof(Letter{}))

// SetAside sends an event to the dead letter. When nobody pays for the letter there is none, and b is given up: see Unpaid.
func (b *Batch) SetAside(l Letter) {
	b.Events[l.Index].Verdict = DeadLettered
	if len(b.Letters) == cap(b.Letters) {
		n := max(16, len(b.Letters))
		if b.Pay(int64(n)*letterSize) != nil {
			return
		}
		b.Letters = slices.Grow(b.Letters, n)
	}
	b.Letters = append(b.Letters, l)
}

// Replace gives event i other bytes; those that it came with are kept.
func (b *Batch) Replace(i int, data []byte) {
	b.NoNewlines = false
	if len(b.replaced) == 0 {
		b.Pay(int64(len(b.Events)) * int64(unsafe.Sizeof(b.replaced[0])))
		b.replaced = slices.Grow(b.replaced, len(b.Events))[:len(b.Events)]
		clear(b.replaced)
	}
	e := &b.Events[i]
	if b.replaced[i] == nil {
		b.replaced[i] = e.Data
	}
	e.Data = data
}

// Original returns the bytes that event i came with, replaced since or not.
func (b *Batch) Original(i int) []byte {
	if i < len(b.replaced) && b.replaced[i] != nil {
		return b.replaced[i]
	}
	return b.Events[i].Data
}

// Reject refuses event i at the start of its data.
func (b *Batch) Reject(i int, code Code, detail string) { b.RejectAt(i, 0, code, detail) }

// RejectAt refuses event i; at is the byte within the event that is to blame.
func (b *Batch) RejectAt(i, at int, code Code, detail string) {
	e := &b.Events[i]
	e.Verdict = Rejected
	if !b.Full() {
		b.Errors = append(b.Errors, Error{Index: i, Offset: e.Offset + at, Code: code, Detail: detail})
	}
}

// Copy returns a copy of p that lives as long as the batch.
func (b *Batch) Copy(p []byte) []byte {
	q := b.Alloc(len(p))
	copy(q, p)
	return q
}

// Alloc returns n bytes of undefined content that live as long as the batch.
func (b *Batch) Alloc(n int) []byte {
	a := &b.arena
	if n > len(a.chunk) {
		if n > len(a.whole) || a.taken { // the chunk that is kept is full or too small
			a.whole = make([]byte, max(arenaChunk, n))
		}
		b.Pay(int64(len(a.whole)))
		a.chunk, a.taken = a.whole, true
	}
	p := a.chunk[:n:n]
	a.chunk = a.chunk[n:]
	return p
}

// mostKept is how many letters and other things of few events a batch keeps room for.
const mostKept = 128

// Reset makes b empty for reuse, and keeps as much of its memory as most requests need.
func (b *Batch) Reset() {
	if cap(b.Events) > 1<<smallestPile {
		b.giveEvents()
	}
	b.refundEvents()
	clear(b.Events)
	b.attrs.reset()
	b.arena.reset()
	*b = Batch{
		Events: b.Events[:0], Headers: emptied(b.Headers), Errors: emptied(b.Errors), Letters: emptied(b.Letters), replaced: emptied(b.replaced),
		Body: b.Body[:0], arena: b.arena, attrs: b.attrs, pile: b.pile,
	}
}

// emptied is list without its elements, and without its memory when that is much.
func emptied[T any](list []T) []T {
	if cap(list) > mostKept {
		return nil
	}
	clear(list)
	return list[:0]
}

// arena is memory for bytes: pieces of chunks, of which earlier ones stay valid when there is a new one.
type arena struct {
	chunk []byte // free part of the newest chunk
	whole []byte // the newest chunk, kept over a reset
	taken bool   // it is paid for
}

const arenaChunk = 16 << 10

func (a *arena) reset() {
	if len(a.whole) > arenaChunk {
		a.whole = nil
	}
	a.chunk, a.taken = nil, false
}
