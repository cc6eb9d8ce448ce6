package ingest

import (
	"bytes"
	"sync"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/ingest/cloudevents"
	"github.com/headgate-io/headgate/internal/jsonscan"
)

// binary finds the framing of a CloudEvent in binary mode. Its data may be of any type, also one that the stream does not
// take otherwise: the body is one event whatever it is.
func (s *Settings) binary(contentType []byte, has bool) (framing, *refusal) {
	if !has {
		return binaryOpaque, nil
	}
	if bytes.IndexByte(contentType, ',') >= 0 {
		return 0, refuse(event.AmbiguousContentType, "send one media type in Content-Type")
	}
	var lower [64]byte
	name, params := mediaType(lower[:0], contentType)
	f := binaryOpaque
	switch {
	case bytes.HasPrefix(name, []byte("application/cloudevents")):
		return 0, refuse(event.BadParameter, "the attributes of a CloudEvent are either in ce- headers, and Content-Type is that of its data, "+
			"or in the body of %s; the request has both", shown(name))
	case string(name) == "application/json", bytes.HasSuffix(name, []byte("+json")):
		f = binaryJSON
	case string(name) == "text/plain":
		f = binaryText
	}
	if f != binaryOpaque && !utf8Charset(params) {
		return 0, s.unsupported("%q: the only charset is utf-8", shown(contentType))
	}
	return f, nil
}

// cloudDecoder reads the attributes of the CloudEvents of one request.
type cloudDecoder struct {
	cloudevents.Decoder
}

var cloudDecoders = sync.Pool{New: func() any { return new(cloudDecoder) }}

func takeCloud() *cloudDecoder { return cloudDecoders.Get().(*cloudDecoder) }

func (c *cloudDecoder) give() {
	c.Forget()
	cloudDecoders.Put(c)
}

// structured takes the body as one event.
func (d *decoder) structured() *event.Problem {
	if at := jsonscan.Skip(d.batch.Body, 0); at < len(d.batch.Body) && d.batch.Body[at] == '[' {
		return event.Problemf(event.BadFraming, "%s has one event, and the body is an array; its type is %s", cloudevents.TypeEvent, cloudevents.TypeBatch)
	}
	if problem := d.json(); problem != nil || d.batch.Events[0].Verdict != event.Keep {
		return problem
	}
	return d.attributes(0)
}

// batched takes each element of an array as an event.
func (d *decoder) batched() *event.Problem {
	at := jsonscan.Skip(d.batch.Body, 0)
	if at == len(d.batch.Body) || d.batch.Body[at] != '[' {
		return event.Problemf(event.BadFraming, "%s has an array of events; the type of a single one is %s", cloudevents.TypeBatch, cloudevents.TypeEvent)
	}
	return d.array(at)
}

// attributes reads those of event i, whose syntax is checked.
func (d *decoder) attributes(i int) *event.Problem {
	return d.invalid(i, d.cloud.JSON(d.batch, i))
}

// invalid refuses event i when there is a fault. Its attributes must be paid for when there is none.
func (d *decoder) invalid(i int, fault cloudevents.Fault) *event.Problem {
	if fault.Detail == "" {
		d.sift(i)
		return d.batch.Unpaid()
	}
	detail := fault.Detail
	if len(fault.Name) > 0 {
		detail = d.detail("attribute %q %s", shown(fault.Name), fault.Detail)
	}
	d.batch.RejectAt(i, fault.Offset, event.InvalidCloudEvent, detail)
	return nil
}

// binary takes the body as the data of one event, which may have none, and the header fields as its attributes.
func (d *decoder) binary(fields []event.Attr) *event.Problem {
	body := d.batch.Body
	var problem *event.Problem
	if d.batch.Syntax == event.JSON && len(body) == 0 {
		_, problem = d.add(body, 0)
	} else {
		problem = d.event(body, 0)
	}
	if problem != nil {
		return problem
	}
	fault, problem := d.cloud.Headers(d.batch, 0, fields)
	if problem != nil || d.batch.Events[0].Verdict != event.Keep {
		return problem
	}
	return d.invalid(0, fault)
}
