// Package problem turns what went wrong into an HTTP answer: the one table from code to status, and the
// application/problem+json body of RFC 9457.
package problem

import (
	"bytes"
	"encoding/json"

	"github.com/headgate-io/headgate/event"
)

// Kind is what the table knows of a code.
type Kind struct {
	Status    int
	Retryable bool // the same request can succeed later
}

// Of returns the kind of a code; ok is false for a code that is missing in the table.
func Of(code event.Code) (k Kind, ok bool) {
	k, ok = table[code]
	return k, ok
}

// Codes returns a copy of the whole table, for the description of the API.
func Codes() map[event.Code]Kind {
	all := make(map[event.Code]Kind, len(table))
	for code, kind := range table {
		all[code] = kind
	}
	return all
}

// Document is the JSON of a problem. An answer with more members embeds it.
type Document struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Code      event.Code   `json:"code"`
	Detail    string       `json:"detail"`
	Retryable bool         `json:"retryable"` // the same request can succeed later, and nothing of it is safe yet
	RequestID string       `json:"request_id,omitempty"`
	Stored    event.Stored `json:"stored,omitempty"`
	Scope     string       `json:"scope,omitempty"`
	Limit     int64        `json:"limit,omitempty"`
	Observed  int64        `json:"observed,omitempty"`
}

// MediaType is the Content-Type of a problem.
const MediaType = "application/problem+json"

// Describe returns the document of p. A 503 always says what is stored, "no" by default; events that are safe in the
// spool ("durable") must not be sent again. A code that is missing in the table counts as internal.
func Describe(p *event.Problem, requestID string) Document {
	kind, ok := table[p.Code]
	if !ok {
		kind = table[event.Internal]
	}
	stored := p.Stored
	if stored == "" && kind.Status == 503 {
		stored = event.StoredNo
	}
	return Document{
		Type: "about:blank", Title: title(kind.Status), Status: kind.Status, Code: p.Code, Detail: p.Detail,
		Retryable: kind.Retryable && stored != event.StoredDurable, RequestID: requestID,
		Stored: stored, Scope: p.Scope, Limit: p.Limit, Observed: p.Observed,
	}
}

// Render returns status, retryability and JSON body of p as Describe has them.
func Render(p *event.Problem, requestID string) (status int, retryable bool, doc []byte) {
	d := Describe(p, requestID)
	return d.Status, d.Retryable, Marshal(d)
}

// Marshal returns v as JSON with < > & as they are: an answer is no HTML, and may be long for all the client can send.
func Marshal(v any) []byte {
	var doc bytes.Buffer
	e := json.NewEncoder(&doc)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("BUG: problem: marshal an answer: " + err.Error())
	}
	return bytes.TrimSuffix(doc.Bytes(), []byte{'\n'})
}
