package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"mime"
	"net/http"

	"github.com/headgate-io/headgate/event"
)

// Trials runs uploaded plugins over sample events. It is called concurrently.
type Trials interface {
	// TryPlugin returns what a plugin makes of events; nothing is stored, and no metric counts it. Errors are *event.Problem:
	// unknown_plugin, plugin_refused (it does not start with the configuration), overloaded.
	TryPlugin(ctx context.Context, o TrialOrder) (TrialResult, error)
}

// TrialOrder is what a plugin is to be tried on.
type TrialOrder struct {
	Plugin, Digest string          // of a version there is
	Config         json.RawMessage // as at an activation; nil for none
	Syntax         event.Syntax
	Events         [][]byte // at most MaxTried
}

// MaxTried is how many events a plugin is tried on at a time.
const MaxTried = 1000

// trialBytes is how many bytes they may have together.
const trialBytes = 4 << 20

// TrialResult is what became of them.
type TrialResult struct {
	Plugin   string            `json:"plugin"`
	Digest   string            `json:"digest"`
	Kept     int               `json:"kept"`
	Filtered int               `json:"filtered"`
	Rejected int               `json:"rejected"`
	Failed   int               `json:"failed"`       // of the rejected: on which the plugin itself failed
	Cost     float64           `json:"ns_per_event"` // of the guest's calls
	Memory   int64             `json:"memory_bytes"` // the largest that the guest had
	Events   []json.RawMessage `json:"events"`       // verdict, key, data, code, reason, detail of each
}

func (s *Server) tryPlugin(w http.ResponseWriter, r *http.Request) error {
	o := TrialOrder{Plugin: r.PathValue("plugin")}
	for name, list := range r.URL.Query() {
		switch {
		case name == "digest" && len(list) == 1:
			o.Digest = list[0]
		case name == "config" && len(list) == 1 && json.Valid([]byte(list[0])):
			o.Config = json.RawMessage(list[0])
		default:
			return event.Problemf(event.BadParameter, "give digest=DIGEST and config=JSON, each once at most, not %s", name)
		}
	}
	v, err := s.findVersion(r.Context(), o.Plugin, o.Digest)
	if err != nil {
		return err
	}
	o.Digest = v.Digest
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	body, err := readBody(w, r, trialType(mediaType), trialBytes)
	if err != nil {
		return err
	}
	o.Syntax, o.Events = trialEvents(mediaType, body)
	if n := len(o.Events); n > MaxTried {
		return &event.Problem{Code: event.TooManyEvents, Scope: "count", Limit: MaxTried, Observed: int64(n), Detail: "try fewer events at a time"}
	}
	select {
	case s.trials <- struct{}{}:
		defer func() { <-s.trials }()
	default:
		return event.Problemf(event.Overloaded, "other trials are in progress; try again")
	}
	result, err := s.deps.Trials.TryPlugin(r.Context(), o)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, result)
}

// trialType is the media type that is taken, or the one that a refusal names.
func trialType(given string) string {
	switch given {
	case "text/plain", "application/octet-stream":
		return given
	}
	return "application/x-ndjson"
}

// trialEvents takes each line that is not blank as an event, and opaque bytes as one.
func trialEvents(mediaType string, body []byte) (syntax event.Syntax, events [][]byte) {
	switch mediaType {
	case "application/octet-stream":
		return event.Opaque, [][]byte{body}
	case "text/plain":
		syntax = event.Text
	default:
		syntax = event.JSON
	}
	for line := range bytes.Lines(body) {
		if line = bytes.TrimRight(line, "\r\n"); len(bytes.TrimSpace(line)) > 0 {
			events = append(events, line)
		}
	}
	return syntax, events
}
