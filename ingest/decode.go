package ingest

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/sdk/wire"
)

// decoder divides the body of a batch into events and checks each. Events are views into the body.
type decoder struct {
	batch   *event.Batch
	limits  Limits
	scanner *jsonscan.Scanner // nil unless the syntax is JSON
	pass    bool              // text that is not UTF-8 is fine
	account *account          // whose turn it is to decode much; nil: nobody asks

	cloud *cloudDecoder // nil unless the events are CloudEvents
	sieve Sieve         // nil: all events go on
}

// decode fills p's batch from its body. Events that are refused alone are marked in the batch; a problem means
// that the request as a whole is refused.
func decode(b *event.Batch, p *plan) *event.Problem {
	d := decoder{batch: b, limits: p.limits, pass: p.settings.PassUTF8, account: p.account, sieve: p.settings.Sieve}
	b.Syntax = p.framing.syntax()
	if problem := d.begin(p.framing); problem != nil {
		return problem
	}
	problem := d.divide(p)
	if problem == nil {
		problem = b.Unpaid()
	}
	return problem
}

// sparse is how many bytes an event has at least for which the first room is enough, up to firstRoom of them.
const (
	sparse    = 256
	firstRoom = 1 << 10
)

// begin takes the room that the events of most bodies need, and the turn that a large one needs.
func (d *decoder) begin(f framing) *event.Problem {
	n := len(d.batch.Body)
	if d.account != nil {
		d.batch.Payer = d.account
		if n > heavyBytes {
			if problem := d.account.wait(); problem != nil {
				return problem
			}
		}
	}
	switch f {
	case oneJSON, batched, lines, textLines, prefixed, prefixedJSON:
		return d.batch.Room(min(1+n/sparse, firstRoom, d.limits.Events))
	}
	return d.batch.Room(1)
}

// more makes room for more events than there are, guessing from those that were found up to byte at of the body how many
// will come.
func (d *decoder) more(at int) *event.Problem {
	n := len(d.batch.Events)
	guess := int(int64(n) * int64(len(d.batch.Body)) / int64(max(at, 1)))
	if d.account != nil && max(2*n, min(guess, d.limits.Events)) > heavyEvents {
		if problem := d.account.wait(); problem != nil {
			return problem
		}
	}
	if problem := d.batch.Unpaid(); problem != nil {
		return problem
	}
	return d.batch.Room(min(max(2*n, guess+guess/8), d.limits.Events))
}

// divide divides the body.
func (d *decoder) divide(p *plan) *event.Problem {
	b := d.batch
	if b.Syntax == event.JSON {
		d.scanner = p.settings.takeScanner()
		defer p.settings.giveScanner(d.scanner)
	}
	if p.framing >= structured {
		d.cloud = takeCloud()
		defer d.cloud.give()
	}
	switch p.framing {
	case structured:
		return d.structured()
	case batched:
		return d.batched()
	case binaryOpaque, binaryJSON, binaryText:
		return d.binary(p.binary)
	case oneJSON:
		return d.json()
	case lines, textLines:
		b.NoNewlines = true
		return d.lines(p.framing)
	case prefixed, prefixedJSON:
		return d.prefixed()
	}
	if len(b.Body) == 0 {
		return nil
	}
	return d.event(b.Body, 0)
}

// lines takes each line as an event. Blank lines are none in NDJSON, empty ones in text.
func (d *decoder) lines(f framing) *event.Problem {
	body := d.batch.Body
	for at, next := 0, 0; at < len(body); at = next {
		end := bytes.IndexByte(body[at:], '\n')
		if end < 0 {
			end, next = len(body), len(body)
		} else {
			end, next = at+end, at+end+1
		}
		if end > at && body[end-1] == '\r' {
			end--
		}
		if end == at || f == lines && jsonscan.Skip(body[:end], at) == end {
			continue
		}
		if p := d.event(body[at:end:end], at); p != nil {
			return p
		}
	}
	return nil
}

// prefixed takes events with a varint length before each.
func (d *decoder) prefixed() *event.Problem {
	body := d.batch.Body
	for rest := body; len(rest) > 0; {
		at := len(body) - len(rest)
		data, after, err := wire.NextEvent(rest, wire.Prefixed)
		if err != nil {
			return event.Problemf(event.BadFraming, "event %d at byte %d: %v", len(d.batch.Events), at, err)
		}
		rest = after
		if p := d.event(data, len(body)-len(rest)-len(data)); p != nil {
			return p
		}
	}
	return nil
}

// event adds the event that starts at byte at of the body, and checks it.
func (d *decoder) event(data []byte, at int) *event.Problem {
	i, p := d.add(data, at)
	if p != nil || d.large(i) {
		return p
	}
	switch d.batch.Syntax {
	case event.JSON:
		if d.scanner.Passes(data) {
			d.batch.Events[i].Fields = d.scanner.EventFields()
		} else {
			d.refuse(i, d.scanner.Fault())
		}
	case event.Text:
		if !d.pass && !utf8.Valid(data) {
			d.batch.RejectAt(i, firstInvalid(data), event.InvalidUTF8, "a byte is not UTF-8")
		}
	}
	if d.sieve != nil && d.cloud == nil {
		d.sift(i)
	}
	return nil
}

// sift asks the sieve about event i, with its attributes, and right after the scanner was at it.
func (d *decoder) sift(i int) {
	if d.sieve == nil || d.batch.Events[i].Verdict != event.Keep {
		return
	}
	var fields []event.Span
	if d.scanner != nil && len(d.batch.Events[i].Data) > 0 {
		fields = d.scanner.Fields[:]
	}
	d.sieve.Sift(d.batch, i, fields)
}

func (d *decoder) add(data []byte, at int) (i int, p *event.Problem) {
	i = len(d.batch.Events)
	if i >= d.limits.Events {
		return 0, tooLarge(event.TooManyEvents, "count", int64(d.limits.Events), int64(i)+1)
	}
	if i == cap(d.batch.Events) {
		if p := d.more(at); p != nil {
			return 0, p
		}
	}
	e := d.batch.Next()
	e.Data, e.Offset = data, at
	return i, nil
}

// large refuses event i when it is over the limit.
func (d *decoder) large(i int) bool {
	n := len(d.batch.Events[i].Data)
	if int64(n) <= d.limits.Event {
		return false
	}
	d.batch.Reject(i, event.EventTooLarge, d.detail("%d bytes, the limit of one event is %d", n, d.limits.Event))
	return true
}

// refuse marks event i with what the scanner found.
func (d *decoder) refuse(i int, fault jsonscan.Fault) {
	detail := fault.Detail
	if fault.Code == event.TrailingData {
		detail = d.detail("a second value starts at byte %d of the event: NDJSON needs a newline after each "+
			"(curl keeps them with --data-binary), application/json takes one value or an array", fault.Offset)
	}
	d.batch.RejectAt(i, fault.Offset, fault.Code, detail)
}

// detail formats a detail that will be shown: errors beyond the first are only counted.
func (d *decoder) detail(format string, args ...any) string {
	if d.batch.Full() {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func firstInvalid(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(text)
}
