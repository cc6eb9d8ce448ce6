package admin

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/headgate-io/headgate/event"
)

// Match is the precondition of a change. The zero value is none.
type Match struct {
	Revision uint64 // If-Match: "<revision>"; 0 for any
	Exists   bool   // If-Match: *
	Absent   bool   // If-None-Match: *
}

// Check returns the problem etag_mismatch when something at revision (0: it does not exist) does not fulfil m.
// The caller changes exactly the revision it has checked, by compare-and-swap.
func (m Match) Check(revision uint64) error {
	switch {
	case m.Absent && revision != 0:
		return event.Problemf(event.EtagMismatch, "it exists already, at revision %d", revision)
	case (m.Exists || m.Revision != 0) && revision == 0:
		return event.Problemf(event.EtagMismatch, "it does not exist")
	case m.Revision != 0 && m.Revision != revision:
		return event.Problemf(event.EtagMismatch, "it is at revision %d by now: read it again", revision)
	}
	return nil
}

// ETag returns the entity tag of a revision.
func ETag(revision uint64) string { return `"` + strconv.FormatUint(revision, 10) + `"` }

// parseMatch reads the precondition from a request's headers.
func parseMatch(h http.Header) (m Match, err error) {
	switch none := h.Get("If-None-Match"); none {
	case "":
	case "*":
		m.Absent = true
	default:
		return m, event.Problemf(event.BadParameter, "If-None-Match takes * only")
	}
	switch tag := h.Get("If-Match"); {
	case tag == "":
	case tag == "*":
		m.Exists = true
	case len(tag) < 2 || !strings.HasPrefix(tag, `"`) || !strings.HasSuffix(tag, `"`):
		return m, event.Problemf(event.BadParameter, `If-Match takes * or one ETag in quotes, as in "7"`)
	default:
		m.Revision, err = strconv.ParseUint(tag[1:len(tag)-1], 10, 64)
		if err != nil || m.Revision == 0 {
			return m, event.Problemf(event.EtagMismatch, "%s is no ETag of ours", tag)
		}
	}
	return m, nil
}
