package ingest

import (
	"bytes"
	"errors"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/ingest/cloudevents"
	"github.com/headgate-io/headgate/internal/window"
)

// plan is what the header of a request says is to be done with its body.
type plan struct {
	who      identity
	name     string // of the stream
	counters *streamMetrics
	stream   Stream
	settings *Settings
	limits   Limits

	framing framing
	codings codings
	ack     event.Level
	strict  bool
	dry     bool
	key     []byte // meaningful when hasKey
	hasKey  bool
	source  []byte      // empty: the caller, or else the client's address
	caller  []byte      // who was authenticated; empty: nobody
	once    []byte      // the idempotency key, empty for none
	run     *window.Run // of the request, when it has a key
	begun   bool        // the caller's rate was asked
	sent    int64       // bytes of the body as it came

	binary  []event.Attr // header fields of a CloudEvent in binary mode, else nil
	account *account     // pays for what decoding needs; nil: nobody does
}

// The routes there are, as the metrics call them.
const (
	routeEvents = "events"
	routeOther  = "other"
)

// route takes the path of a request apart; events is false when it is not that of a stream's events.
func route(target []byte) (name, query []byte, events bool) {
	path, query, _ := bytes.Cut(target, []byte{'?'})
	if name, events = bytes.CutPrefix(path, []byte("/v1/streams/")); events {
		name, events = bytes.CutSuffix(name, []byte("/events"))
	}
	return name, query, events && bytes.IndexByte(name, '/') < 0
}

// examine does every check that needs no byte of the body, and makes the plan for it. It changes nothing but what the
// caller's rate has left: it may be called before the body is asked for and again when it is about to be read.
func (c *core) examine(p *plan, r *request) (no *refusal) {
	name, query, ok := route(r.target)
	if !ok {
		return refuse(event.NotFound, "events are posted to /v1/streams/{stream}/events")
	}
	if string(r.method) != "POST" {
		return refuse(event.MethodNotAllowed, "events are sent with POST").with("Allow", "POST")
	}
	if no = c.authorize(p, r.fields, name); no != nil {
		return no
	}
	if no = c.open(p, name); no != nil {
		return no
	}
	if no = p.parse(r.fields, query); no == nil {
		no = c.admit(r, p)
	}
	if no != nil {
		no.Stream = p.counters.name
	}
	return no
}

func (c *core) open(p *plan, name []byte) *refusal {
	if p.counters = c.metrics.known(name); p.counters != nil {
		p.name = p.counters.name
	} else {
		p.name = string(name)
	}
	stream, err := c.gate.Open(p.name)
	if err != nil {
		return &refusal{Problem: c.problem(err)}
	}
	p.stream, p.settings = stream, stream.Settings()
	switch {
	case p.settings.Unmade:
		p.counters = c.metrics.stream("")
	case p.counters == nil:
		p.counters = c.metrics.stream(p.name)
	}
	p.limits = p.settings.limits()
	return nil
}

// admit refuses what is known to be too much before it is sent, for us or for the caller's rate.
func (c *core) admit(r *request, p *plan) *refusal {
	if r.length > p.limits.Body {
		return &refusal{Problem: tooLarge(event.BodyTooLarge, "body", p.limits.Body, r.length)}
	}
	if held := c.budget.Held(); held > 0 && held+max(r.length, 0) > c.budget.Limit() {
		return &refusal{Problem: overloaded()}
	}
	if problem := c.begin(p, r); problem != nil {
		return &refusal{Problem: problem}
	}
	return nil
}

func overloaded() *event.Problem {
	return event.Problemf(event.Overloaded, "too many bytes are in flight; send again later")
}

// single are the fields that a request may have once.
const (
	contentType = iota
	ackField
	keyField
	sourceField
	onceField
	singles
)

func single(name []byte) int {
	switch string(name) {
	case "content-type":
		return contentType
	case "headgate-ack":
		return ackField
	case "headgate-key":
		return keyField
	case "headgate-source":
		return sourceField
	case "idempotency-key":
		return onceField
	}
	return -1
}

// parse reads the header fields and the query.
func (p *plan) parse(fields []event.Attr, query []byte) (no *refusal) {
	var values [singles][]byte
	var seen [singles]bool
	for i := range fields {
		f := &fields[i]
		if k := single(f.Name); k >= 0 {
			if seen[k] {
				return twice(k, f.Name)
			}
			values[k], seen[k] = f.Value, true
		}
		if no = p.other(f); no != nil {
			return no
		}
	}
	if p.binary != nil {
		p.binary = fields
		p.framing, no = p.settings.binary(values[contentType], seen[contentType])
	} else {
		p.framing, no = p.settings.framing(values[contentType])
	}
	if no != nil {
		return no
	}
	if len(values[keyField]) > maxKey {
		return refuse(event.KeyTooLong, "Headgate-Key has %d bytes, the limit is %d", len(values[keyField]), maxKey)
	}
	p.key, p.hasKey, p.source = values[keyField], seen[keyField], values[sourceField]
	if seen[onceField] {
		if p.once, no = idempotencyKey(values[onceField]); no != nil {
			return no
		}
	}
	return p.ask(query, values[ackField])
}

// maxKey is how many bytes a partition key may have.
const maxKey = 1 << 10

func twice(k int, name []byte) *refusal {
	if k == contentType {
		return refuse(event.AmbiguousContentType, "send Content-Type once")
	}
	return refuse(event.BadParameter, "%s is there twice", name)
}

// other reads the fields that may be repeated, and refuses those whose promise this version cannot keep.
func (p *plan) other(f *event.Attr) *refusal {
	switch string(f.Name) {
	case "content-encoding":
		return p.codings.add(f.Value)
	case "ce-datacontenttype":
		return refuse(event.BadParameter, "ce-datacontenttype is not sent: Content-Type says what the data of the event is")
	}
	if bytes.HasPrefix(f.Name, []byte(cloudevents.Prefix)) {
		p.binary = noFields
	}
	return nil
}

var noFields = []event.Attr{} // not nil; read only

// ask reads the query, and from it or the field Headgate-Ack the level of acknowledgement.
func (p *plan) ask(query, ackField []byte) *refusal {
	var ack, mode, dry []byte
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		name, value, _ := bytes.Cut(pair, []byte{'='})
		var to *[]byte
		switch string(name) {
		case "ack":
			to = &ack
		case "mode":
			to = &mode
		case "dry_run":
			to = &dry
		default:
			return refuse(event.BadParameter, "the query parameters are ack, mode and dry_run, not %q", name)
		}
		if len(*to) > 0 || len(value) == 0 {
			return refuse(event.BadParameter, "%s must have one value", name)
		}
		*to = value
	}
	switch string(mode) {
	case "", "lenient":
	case "strict":
		p.strict = true
	default:
		return refuse(event.BadParameter, "mode is lenient or strict, not %q", mode)
	}
	switch string(dry) {
	case "", "false":
	case "true":
		p.dry = true
	default:
		return refuse(event.BadParameter, "dry_run is true or false, not %q", dry)
	}
	if len(ack) > 0 && len(ackField) > 0 && !bytes.Equal(ack, ackField) {
		return refuse(event.BadParameter, "the query asks for ack=%s, Headgate-Ack for %s", ack, ackField)
	}
	if len(ack) == 0 {
		ack = ackField
	}
	return p.level(ack)
}

// level finds the level of acknowledgement. One outside the stream's bounds is refused: a stronger one must not be
// weakened, and who asks for a weaker one would not expect to wait.
func (p *plan) level(word []byte) *refusal {
	lowest, usual, highest := p.settings.levels()
	if len(word) == 0 {
		p.ack = usual
		return nil
	}
	level, ok := event.ParseLevel(string(word))
	switch {
	case !ok:
		return refuse(event.BadParameter, "ack is accepted, durable or delivered, not %q", word)
	case level < lowest || level > highest:
		return refuse(event.BadParameter, "this stream acknowledges from %s to %s, not %s", lowest, highest, level)
	}
	p.ack = level
	return nil
}

// problem returns the problem that err is; any other error is our own fault and goes into the log.
func (c *core) problem(err error) *event.Problem {
	var p *event.Problem
	if errors.As(err, &p) {
		return p
	}
	c.log.Error("request failed", "error", err)
	return event.Problemf(event.Internal, "an error of the gateway, named in its log")
}
