package ingest

import (
	"io"
	"net/netip"
	"time"

	"github.com/headgate-io/headgate/event"
)

// request is one HTTP request as the core sees it, whatever the transport, which owns all of its bytes.
type request struct {
	method []byte
	target []byte       // path and query as sent
	fields []event.Attr // header fields in the order they came, names in lower case, values without white space around
	length int64        // announced bytes of the body, -1 when it is chunked
	client []byte       // its address, as text
	addr   netip.Addr   // the same; invalid while it is not known
	now    time.Time    // when the header was there

	// body ends in io.EOF only behind the last byte of a complete body; any other end is an error, and a
	// *event.Problem where the transport knows what it means. It is not touched by examine.
	body  io.Reader
	whole bool // all of it was there at now

	// room is memory for the answer's document, which may outgrow it.
	room []byte
}

// answer is what a request gets.
type answer struct {
	status    int
	fields    [8]field // the first n count
	n         int
	mediaType string
	doc       []byte
	owed      int64         // bytes of the memory budget that doc holds until it is sent
	retry     time.Duration // when to come back, 0: not known
	unknown   bool          // what is stored is not known yet
	safe      bool          // the events are durable, though not as far as the request asked: nothing is to be sent again
	close     bool          // the connection cannot be used again: the body was not read to its end
}

type field struct{ name, value string }

func (a *answer) add(name, value string) {
	if value != "" {
		a.fields[a.n] = field{name, value}
		a.n++
	}
}

// refusal is why a request is refused as a whole.
type refusal struct {
	Problem *event.Problem
	Stream  string // label of the metrics; empty when no stream was found
	Name    string // of a further header field of the answer, such as Allow; empty for none
	Value   string
}

func refuse(code event.Code, format string, args ...any) *refusal {
	return &refusal{Problem: event.Problemf(code, format, args...)}
}

// with adds a header field to the answer.
func (r *refusal) with(name, value string) *refusal {
	r.Name, r.Value = name, value
	return r
}

func tooLarge(code event.Code, scope string, limit, observed int64) *event.Problem {
	p := event.Problemf(code, "the limit is %d (%s); send less at once", limit, scope)
	p.Scope, p.Limit, p.Observed = scope, limit, observed
	return p
}
