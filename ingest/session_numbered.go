package ingest

import (
	"bytes"
	"strconv"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/session"
)

// numbering is of which session the events of a request over HTTP are that bring no id, and the number of the first. A client
// that cannot go on with its session sends what is left by requests: what has come before is known by its number.
type numbering struct {
	session []byte // empty: of none
	first   uint64
}

// mostFirst leaves room for the numbers of a request.
const mostFirst = 1 << 63

// numberingOf reads Headgate-Session: the session's name, a slash, and the number.
func numberingOf(value []byte) (n numbering, no *refusal) {
	at := bytes.LastIndexByte(value, '/')
	first, err := uint64(0), error(nil)
	if at > 0 {
		first, err = strconv.ParseUint(string(value[at+1:]), 10, 64)
	}
	if at < 1 || at > session.MostName || !printable(value) || err != nil || first == 0 || first > mostFirst || value[at+1] == '0' {
		return n, refuse(event.BadParameter, "Headgate-Session is SESSION/NUMBER: a name of at most %d printable characters without blanks, and the sequence of the first event, from 1", session.MostName)
	}
	return numbering{value[:at], first}, nil
}

// number has the events of b called as those of the session are, and its producer the one that the session would be.
func (p *plan) number(b *event.Batch) {
	b.Session, b.First = string(p.numbering.session), p.numbering.first
	p.itself(b, p.numbering.session)
}

// itself has a session be the producer of b where neither a source nor a token is, and events have no ids of others.
func (p *plan) itself(b *event.Batch, session []byte) {
	if len(p.source) == 0 && len(p.caller) == 0 && !p.settings.Identified {
		b.Producer = session
	}
}
