package ingest

import (
	"bytes"

	"github.com/headgate-io/headgate/event"
)

// query is what a request's query asks for; empty values for what it does not name.
type query struct{ ack, mode, dry []byte }

// parseQuery takes a query apart. Each name may be there once, with a value.
func parseQuery(text []byte) (q query, no *refusal) {
	for len(text) > 0 {
		var pair []byte
		pair, text, _ = bytes.Cut(text, []byte{'&'})
		name, value, _ := bytes.Cut(pair, []byte{'='})
		var to *[]byte
		switch string(name) {
		case "ack":
			to = &q.ack
		case "mode":
			to = &q.mode
		case "dry_run":
			to = &q.dry
		default:
			return q, refuse(event.BadParameter, "the query parameters are ack, mode and dry_run, not %q", name)
		}
		if len(*to) > 0 || len(value) == 0 {
			return q, refuse(event.BadParameter, "%s must have one value", name)
		}
		*to = value
	}
	return q, nil
}

// ask plans what the query wants, and the level of acknowledgement, which the field Headgate-Ack may name instead.
func (p *plan) ask(text, ackField []byte) *refusal {
	q, no := parseQuery(text)
	if no != nil {
		return no
	}
	switch string(q.mode) {
	case "", "lenient":
	case "strict":
		p.strict = true
	default:
		return refuse(event.BadParameter, "mode is lenient or strict, not %q", q.mode)
	}
	switch string(q.dry) {
	case "", "false":
	case "true":
		p.dry = true
	default:
		return refuse(event.BadParameter, "dry_run is true or false, not %q", q.dry)
	}
	if len(q.ack) > 0 && len(ackField) > 0 && !bytes.Equal(q.ack, ackField) {
		return refuse(event.BadParameter, "the query asks for ack=%s, Headgate-Ack for %s", q.ack, ackField)
	}
	if len(q.ack) == 0 {
		q.ack = ackField
	}
	return p.level(q.ack)
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
