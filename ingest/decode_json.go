package ingest

import (
	"bytes"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
)

// json takes the body as one JSON value: an event, or the array of its events.
func (d *decoder) json() *event.Problem {
	body := d.batch.Body
	at := jsonscan.Skip(body, 0)
	if at < len(body) && body[at] == '[' {
		return d.array(at)
	}
	if at == len(body) {
		return event.Problemf(event.MalformedJSON, "the body is empty; send one JSON value or an array of events")
	}
	data := bytes.TrimRight(body[at:], " \t\r\n")
	return d.event(data[:len(data):len(data)], at)
}

// array takes each element of the array whose bracket is body[at] as an event. What breaks the array's own syntax
// refuses the request: where the next event starts would be a guess.
func (d *decoder) array(at int) *event.Problem {
	body := d.batch.Body
	if at = jsonscan.Skip(body, at+1); at < len(body) && body[at] == ']' {
		return d.end(at + 1)
	}
	for {
		at = jsonscan.Skip(body, at)
		end, fault := d.scanner.Value(body, at)
		if end < 0 {
			return d.broken(fault.Offset, fault.Detail)
		}
		if p := d.element(at, end, fault); p != nil {
			return p
		}
		if at = jsonscan.Skip(body, end); at == len(body) {
			return d.broken(at, "the text ends inside the array")
		}
		switch body[at] {
		case ',':
			at++
		case ']':
			return d.end(at + 1)
		default:
			return d.broken(at, "a comma or the end of the array is expected")
		}
	}
}

// element adds the value body[at:end], which the scanner has just checked.
func (d *decoder) element(at, end int, fault jsonscan.Fault) *event.Problem {
	i, p := d.add(d.batch.Body[at:end:end], at)
	switch {
	case p != nil:
		return p
	case d.large(i):
	case fault.Code != "":
		d.batch.RejectAt(i, fault.Offset-at, fault.Code, fault.Detail)
	default:
		d.batch.Events[i].Fields = d.scanner.EventFields()
		if d.cloud != nil {
			return d.attributes(i)
		}
		d.sift(i)
	}
	return nil
}

// end makes sure that nothing follows the array.
func (d *decoder) end(at int) *event.Problem {
	if at = jsonscan.Skip(d.batch.Body, at); at < len(d.batch.Body) {
		return event.Problemf(event.TrailingData, "byte %d: nothing may follow the array", at)
	}
	return nil
}

func (d *decoder) broken(offset int, detail string) *event.Problem {
	return event.Problemf(event.MalformedJSON, "event %d, byte %d: %s; nothing of the array is stored", len(d.batch.Events), offset, detail)
}
