package admin

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/headgate-io/headgate/event"
)

// readBody returns a request's body of at most limit bytes and the given media type. It takes none with a coding: on this
// listener there is nothing to inflate.
func readBody(w http.ResponseWriter, r *http.Request, mediaType string, limit int64) ([]byte, error) {
	given, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || given != mediaType {
		return nil, event.Problemf(event.UnsupportedMediaType, "send Content-Type: %s", mediaType)
	}
	if c := r.Header.Get("Content-Encoding"); c != "" && c != "identity" {
		w.Header().Set("Accept-Encoding", "identity")
		return nil, event.Problemf(event.UnsupportedCoding, "send the body without Content-Encoding")
	}
	limited := http.MaxBytesReader(w, r.Body, limit)
	if r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	body, err := io.ReadAll(limited)
	switch {
	case err == nil:
		allowWork(w)
		return body, nil
	case isTooLarge(err):
		return nil, err
	}
	return nil, event.Problemf(event.IncompleteBody, "the body ended early: %v", err)
}

// workTime is what the server has for a request that it has read: to compile a module and those before it may take minutes.
const workTime = 10 * time.Minute

// allowWork takes the times off that are for reading a request and for writing an answer at once; the first would end the request's
// context, too.
func allowWork(w http.ResponseWriter) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Now().Add(workTime))
}

func isTooLarge(err error) bool {
	_, ok := err.(*http.MaxBytesError)
	return ok
}

// decodeStrict reads one JSON object into v and refuses members that v does not have.
func decodeStrict(body []byte, v any) error {
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return event.Problemf(event.MalformedJSON, "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); err != io.EOF {
		return event.Problemf(event.TrailingData, "the body is one JSON object")
	}
	return nil
}
