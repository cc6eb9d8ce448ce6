package ingest

import "github.com/headgate-io/headgate/event"

// Auth knows who may send. It is called concurrently, for each request before anything else is done for it, and must
// neither block nor keep what it is given.
type Auth interface {
	// Sender returns the caller who sends to a stream with this value of the header Authorization (nil: there was none),
	// or why it may not: an *event.Problem, unauthorized or forbidden. The stream may not exist.
	Sender(authorization, stream []byte) (id []byte, no *event.Problem)
}

// challenge is what an answer 401 must say (RFC 9110 section 11.6.1, RFC 6750 section 3).
const challenge = `Bearer realm="headgate"`

// authorize finds out who sends, by the header alone. Without an Auth everybody may.
func (c *core) authorize(p *plan, fields []event.Attr, stream []byte) *refusal {
	if c.auth == nil {
		return nil
	}
	var authorization []byte
	for i := range fields {
		if string(fields[i].Name) != "authorization" {
			continue
		}
		if authorization != nil {
			return refuse(event.Unauthorized, "send Authorization once").with("WWW-Authenticate", challenge)
		}
		authorization = fields[i].Value
	}
	var no *event.Problem
	if p.caller, no = c.auth.Sender(authorization, stream); no == nil {
		return nil
	}
	r := &refusal{Problem: no}
	if no.Code == event.Unauthorized {
		r.with("WWW-Authenticate", challenge)
	}
	return r
}
