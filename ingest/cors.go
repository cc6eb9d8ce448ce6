package ingest

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/headgate-io/headgate/event"
)

// cors tells browsers which pages of other origins may send events and read the answers (Fetch standard, section 3.2).
// It keeps nobody out who is no browser.
type cors struct{ origins map[string]bool }

// newCORS returns nil when there are no origins: then nothing is different for anybody.
func newCORS(origins []string) *cors {
	if len(origins) == 0 {
		return nil
	}
	c := &cors{origins: map[string]bool{}}
	for _, o := range origins {
		c.origins[o] = true
	}
	return c
}

// CheckOrigin reports what is wrong with an origin of Config.Origins. Origins are compared as text, so it must be written
// as browsers write it.
func CheckOrigin(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Host == "" || strings.Contains(u.Host, "*") || origin != strings.ToLower(u.Scheme+"://"+u.Host) {
		return fmt.Errorf("%q is no origin; write each one like https://app.example.com or http://localhost:3000, in lower case, without a path", origin)
	}
	if port := u.Port(); u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		return fmt.Errorf("%q: browsers leave out the port %s", origin, port)
	}
	return nil
}

const (
	corsMethods = "POST"
	corsFields  = "Content-Type, Content-Encoding, Authorization, Headgate-Ack, Headgate-Key, Headgate-Ordering, Headgate-Source, Headgate-Session, Idempotency-Key, X-Request-Id, traceparent, tracestate"
	corsExposed = "Headgate-Rejected, Retry-After, X-Request-Id, Traceparent, Tracestate, Idempotency-Replayed, Headgate-Idempotency-Window, WWW-Authenticate, Accept, Accept-Encoding"
	corsSeconds = "600" // that a browser may remember the answer to a preflight
)

// mark adds to the fields of an answer what a page at origin needs to read it.
func (c *cors) mark(h *fasthttp.ResponseHeader, origins [][]byte) {
	h.Add("Vary", "Origin")
	if len(origins) == 1 && c.origins[string(origins[0])] {
		h.SetBytesV("Access-Control-Allow-Origin", origins[0])
		h.Set("Access-Control-Expose-Headers", corsExposed)
	}
}

// mark3 is mark for HTTP/3.
func (c *cors) mark3(r *reply3, origins []string) {
	r.field("vary", "Origin")
	if len(origins) == 1 && c.origins[origins[0]] {
		r.field("access-control-allow-origin", origins[0])
		r.field("access-control-expose-headers", corsExposed)
	}
}

// markUnread marks the answer to a header that could not be read, so that nobody knows from which page it came. What it
// says is no secret.
func (c *cors) markUnread(h *fasthttp.ResponseHeader) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", corsExposed)
}

// preflight answers the question that a browser asks before it sends what a form could not. ok is false when r is no such
// question. It comes without credentials.
func (c *cors) preflight(r *request) (a answer, no *refusal, ok bool) {
	origin := value(r.fields, "origin")
	if string(r.method) != "OPTIONS" || origin == nil || value(r.fields, "access-control-request-method") == nil {
		return a, nil, false
	}
	if count(r.fields, "origin") > 1 {
		return a, twice(originField, []byte("origin")), true
	}
	if !c.origins[string(origin)] {
		return a, refuse(event.Forbidden, "the origin %q is not among http.cors.origins", origin), true
	}
	a.status = 204
	a.add("Access-Control-Allow-Methods", corsMethods)
	a.add("Access-Control-Allow-Headers", corsFields+attributes(value(r.fields, "access-control-request-headers")))
	a.add("Access-Control-Max-Age", corsSeconds)
	return a, nil, true
}

// attributes returns the names of CloudEvents attributes in a list of field names, each with a comma in front.
func attributes(list []byte) string {
	var b strings.Builder
	for name := range bytes.SplitSeq(list, []byte{','}) {
		name = bytes.TrimSpace(name)
		if rest, ok := bytes.CutPrefix(name, []byte("ce-")); ok && len(rest) > 0 && bytes.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789") == nil {
			b.WriteString(", ")
			b.Write(name)
		}
	}
	return b.String()
}

// value returns the value of the first field called name, nil when there is none.
func value(fields []event.Attr, name string) []byte {
	for i := range fields {
		if string(fields[i].Name) == name {
			return fields[i].Value
		}
	}
	return nil
}

// count is how many fields are called name.
func count(fields []event.Attr, name string) (n int) {
	for i := range fields {
		if string(fields[i].Name) == name {
			n++
		}
	}
	return n
}
