package event

import (
	"slices"
	"time"
)

// Syntax is what events of a batch are checked as, on arrival and again when a plugin replaced one.
type Syntax uint8

// Opaque bytes are not checked; Text is checked for UTF-8; JSON is checked whole.
const (
	Opaque Syntax = iota
	Text
	JSON
)

// MaxErrors is how many refused events an answer describes; the rest is only counted (CONTRACT: errors_truncated).
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

	Ack    Level // level asked for, already within the stream's bounds
	Strict bool  // one rejected event refuses the whole batch
	Trial  bool  // a dry run: nothing is stored, and Traces say what happens to each event
	Named  bool  // some events have an ID
	Lines  bool  // no event contains a newline: it was framed by them

	Key    []byte // key for events that got none (Headgate-Key); meaningful when HasKey
	HasKey bool

	TableVersion uint64 // routing table by which the events were assigned
	Chain        string // digest of the plugin chain that processed the batch, empty for none

	// Late, when it is set, is called once after an Accept that failed with Stored "unknown", as soon as the outcome is
	// known or certain never to be: with a batch that has the verdicts and errors of this one and no data, and the error
	// that Accept would have returned. It is called by any goroutine, perhaps before Accept returns, and must be quick.
	Late func(late *Batch, err error)

	Events []Event
	Errors []Error // the first MaxErrors refused events, in order of their discovery

	RetryAfter time.Duration // when what was refused for its rate can be taken, at the earliest; 0: nothing was

	Traces  []Trace  // of a trial, one for each event
	Letters []Letter // why events were set aside, one for each with the verdict DeadLettered

	replaced [][]byte // by event, what it was before Replace; empty when none was replaced

	Body  []byte // the decoded request body, the buffer that Event.Data points into; reused with the batch
	arena arena
	attrs []Attr // what Attrs of events are parts of
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

// Letter says why an event goes to the dead letter.
type Letter struct {
	Index          int // position in the request
	Code           Code
	Detail         string
	Plugin, Digest string // what failed on it, with its version
}

// SetAside sends an event to the dead letter.
func (b *Batch) SetAside(l Letter) {
	b.Events[l.Index].Verdict = DeadLettered
	b.Letters = append(b.Letters, l)
}

// Replace gives event i other bytes; those that it came with are kept.
func (b *Batch) Replace(i int, data []byte) {
	b.Lines = false
	if len(b.replaced) == 0 {
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
func (b *Batch) Copy(p []byte) []byte { return b.arena.copy(p) }

// Alloc returns n bytes of undefined content that live as long as the batch.
func (b *Batch) Alloc(n int) []byte { return b.arena.alloc(n) }

// KeepAttrs returns a copy of list that lives as long as the batch; the names and values in it stay whose they are.
func (b *Batch) KeepAttrs(list []Attr) []Attr {
	from := len(b.attrs)
	b.attrs = append(b.attrs, list...) // lists given out before stay right when it moves on to a larger array
	return b.attrs[from:len(b.attrs):len(b.attrs)]
}

// maxAttrs is how many attributes a batch may have room for when its memory is kept.
const maxAttrs = 64 << 10

// Reset makes b empty for reuse and keeps its memory.
func (b *Batch) Reset() {
	clear(b.Events)
	clear(b.Headers)
	clear(b.Errors)
	clear(b.Letters)
	clear(b.replaced)
	clear(b.attrs)
	if cap(b.attrs) > maxAttrs {
		b.attrs = nil
	}
	next := Batch{Events: b.Events[:0], Headers: b.Headers[:0], Errors: b.Errors[:0], Letters: b.Letters[:0],
		replaced: b.replaced[:0], Body: b.Body[:0], arena: b.arena, attrs: b.attrs[:0]}
	next.arena.reset()
	*b = next
}

// arena hands out pieces of chunks; earlier pieces stay valid when it grows.
type arena struct {
	chunk []byte // free part of the newest chunk
	whole []byte // the newest chunk, kept over a reset
}

const arenaChunk = 16 << 10

func (a *arena) alloc(n int) []byte {
	if n > len(a.chunk) {
		a.whole = make([]byte, max(arenaChunk, n))
		a.chunk = a.whole
	}
	p := a.chunk[:n:n]
	a.chunk = a.chunk[n:]
	return p
}

func (a *arena) copy(p []byte) []byte {
	q := a.alloc(len(p))
	copy(q, p)
	return q
}

func (a *arena) reset() { a.chunk = a.whole }
