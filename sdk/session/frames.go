package session

import "encoding/binary"

// Frame is one that is small enough to be read whole: all but EVENTS. Append appends it with type and length; Parse reads
// its payload, of which texts are copies.
type Frame interface {
	Append(dst []byte) []byte
	Parse(payload []byte) error
}

// Hello opens a session, or goes on with one.
type Hello struct {
	Version uint64
	Stream  string
	Session string // 1 to 64 printable characters without blanks; empty: the gateway makes one
	Token   string // empty: none
	Source  string // the producer's name; empty: the token's id, or the address
	Level   Level  // that EVENTS are answered at
	Acked   uint64 // the last sequence whose RESULT has come; 0: none
	Fields  []Field
}

// Field is what a header field of a request would be, for all events of the session.
type Field struct{ Name, Value string }

// Append implements Frame.
func (h *Hello) Append(dst []byte) []byte {
	dst, at := open(dst, TypeHello)
	dst = binary.AppendUvarint(dst, h.Version)
	for _, text := range []string{h.Stream, h.Session, h.Token, h.Source} {
		dst = appendText(dst, text)
	}
	dst = binary.AppendUvarint(dst, uint64(h.Level))
	dst = binary.AppendUvarint(dst, h.Acked)
	dst = binary.AppendUvarint(dst, uint64(len(h.Fields)))
	for _, f := range h.Fields {
		dst = appendText(appendText(dst, f.Name), f.Value)
	}
	return shut(dst, at)
}

// Parse implements Frame. Of another version only that is read: the rest may differ.
func (h *Hello) Parse(payload []byte) error {
	p := parser{b: payload}
	*h = Hello{Version: p.uvarint()}
	if h.Version != Version {
		return p.fault()
	}
	h.Stream, h.Session, h.Token, h.Source = p.text(), p.text(), p.text(), p.text()
	h.Level, h.Acked = Level(p.uvarint()), p.uvarint()
	n := p.uvarint()
	if n > MostFields {
		p.failed = true
	}
	for ; n > 0 && !p.failed; n-- {
		h.Fields = append(h.Fields, Field{p.text(), p.text()})
	}
	return p.end()
}

// Welcome answers Hello.
type Welcome struct {
	Session   string
	Settled   uint64 // every event up to it has its outcome, at the level of the session; 0: none, or not known any more
	Credit    uint64 // bytes of EVENTS payloads that may be sent
	Level     Level  // that EVENTS are answered at
	MostFrame uint64 // bytes of events in an EVENTS frame
	MostEvent uint64 // bytes of one event
	MostCount uint64 // events in an EVENTS frame
	Idle      uint64 // milliseconds without a frame, then the session's stream is ended
}

// Append implements Frame.
func (w *Welcome) Append(dst []byte) []byte {
	dst, at := open(dst, TypeWelcome)
	dst = appendText(dst, w.Session)
	return shut(appendAll(dst, w.Settled, w.Credit, uint64(w.Level), w.MostFrame, w.MostEvent, w.MostCount, w.Idle), at)
}

// Parse implements Frame.
func (w *Welcome) Parse(payload []byte) error {
	p := parser{b: payload}
	*w = Welcome{Session: p.text(), Settled: p.uvarint(), Credit: p.uvarint(), Level: Level(p.uvarint()), MostFrame: p.uvarint(),
		MostEvent: p.uvarint(), MostCount: p.uvarint(), Idle: p.uvarint()}
	return p.end()
}

// Ack says that every event up to UpTo has come as far as Level, or never will, which a RESULT or REJECT said before.
type Ack struct {
	Level Level
	UpTo  uint64
}

// Append implements Frame.
func (a *Ack) Append(dst []byte) []byte {
	dst, at := open(dst, TypeAck)
	return shut(appendAll(dst, uint64(a.Level), a.UpTo), at)
}

// Parse implements Frame.
func (a *Ack) Parse(payload []byte) error {
	p := parser{b: payload}
	*a = Ack{Level(p.uvarint()), p.uvarint()}
	return p.end()
}

// Result says what has become of the events of one EVENTS frame. The five counts add up to Count.
type Result struct {
	First, Count uint64
	Level        Level // that was reached; below the session's when the backend does not take the events now
	Accepted     uint64
	Filtered     uint64
	Rejected     uint64 // each, or the first 100, with a REJECT before
	Duplicates   uint64
	DeadLettered uint64
}

// Append implements Frame.
func (r *Result) Append(dst []byte) []byte {
	dst, at := open(dst, TypeResult)
	return shut(appendAll(dst, r.First, r.Count, uint64(r.Level), r.Accepted, r.Filtered, r.Rejected, r.Duplicates, r.DeadLettered), at)
}

// Parse implements Frame.
func (r *Result) Parse(payload []byte) error {
	p := parser{b: payload}
	*r = Result{First: p.uvarint(), Count: p.uvarint(), Level: Level(p.uvarint()), Accepted: p.uvarint(), Filtered: p.uvarint(),
		Rejected: p.uvarint(), Duplicates: p.uvarint(), DeadLettered: p.uvarint()}
	return p.end()
}

// Reject says why an event is refused.
type Reject struct {
	Seq       uint64
	Retryable bool // the same event can be taken later, under another sequence
	Code      string
	Detail    string
}

// Append implements Frame.
func (r *Reject) Append(dst []byte) []byte {
	dst, at := open(dst, TypeReject)
	dst = binary.AppendUvarint(dst, r.Seq)
	return shut(appendText(appendText(appendBool(dst, r.Retryable), r.Code), r.Detail), at)
}

// Parse implements Frame.
func (r *Reject) Parse(payload []byte) error {
	p := parser{b: payload}
	*r = Reject{Seq: p.uvarint(), Retryable: p.bool(), Code: p.text(), Detail: p.text()}
	return p.end()
}

// Credit allows so many more bytes of EVENTS payloads.
type Credit struct{ Bytes uint64 }

// Append implements Frame.
func (c *Credit) Append(dst []byte) []byte {
	dst, at := open(dst, TypeCredit)
	return shut(appendAll(dst, c.Bytes), at)
}

// Parse implements Frame.
func (c *Credit) Parse(payload []byte) error {
	p := parser{b: payload}
	*c = Credit{p.uvarint()}
	return p.end()
}

// SlowDown says that an EVENTS frame is held, and tried again in so many milliseconds.
type SlowDown struct {
	Millis uint64
	Code   string
	Detail string
}

// Append implements Frame.
func (s *SlowDown) Append(dst []byte) []byte {
	dst, at := open(dst, TypeSlowDown)
	return shut(appendText(appendText(appendAll(dst, s.Millis), s.Code), s.Detail), at)
}

// Parse implements Frame.
func (s *SlowDown) Parse(payload []byte) error {
	p := parser{b: payload}
	*s = SlowDown{p.uvarint(), p.text(), p.text()}
	return p.end()
}

// GoAway says that nothing behind Last is taken on this connection: it is to be sent on another one.
type GoAway struct{ Last uint64 }

// Append implements Frame.
func (g *GoAway) Append(dst []byte) []byte {
	dst, at := open(dst, TypeGoAway)
	return shut(appendAll(dst, g.Last), at)
}

// Parse implements Frame.
func (g *GoAway) Parse(payload []byte) error {
	p := parser{b: payload}
	*g = GoAway{p.uvarint()}
	return p.end()
}

// Error ends a stream.
type Error struct {
	Retryable bool // the session can be gone on with later
	Code      string
	Detail    string
}

// Append implements Frame.
func (e *Error) Append(dst []byte) []byte {
	dst, at := open(dst, TypeError)
	return shut(appendText(appendText(appendBool(dst, e.Retryable), e.Code), e.Detail), at)
}

// Parse implements Frame.
func (e *Error) Parse(payload []byte) error {
	p := parser{b: payload}
	*e = Error{p.bool(), p.text(), p.text()}
	return p.end()
}

// Fin says that nothing follows: from the client no EVENTS, from the gateway no outcome.
type Fin struct{}

// Append implements Frame.
func (*Fin) Append(dst []byte) []byte {
	dst, at := open(dst, TypeFin)
	return shut(dst, at)
}

// Parse implements Frame.
func (*Fin) Parse(payload []byte) error { return (&parser{b: payload}).end() }
