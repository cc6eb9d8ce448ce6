package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/headgate-io/headgate/event"
)

// Streams holds the streams' definitions. Its methods may be called concurrently and take at most a few
// seconds; errors are *event.Problem: unknown_stream, bad_stream_name, managed_by_file, etag_mismatch,
// partitions_fixed, bad_configuration.
type Streams interface {
	// Streams returns all streams, by name.
	Streams(ctx context.Context) ([]Definition, error)
	Stream(ctx context.Context, name string) (Definition, error)
	// SetStream replaces the whole document of a stream, or creates it. doc is a JSON object without name,
	// revision and managed, not yet checked otherwise.
	SetStream(ctx context.Context, name string, doc json.RawMessage, when Match) (d Definition, created bool, err error)
	DeleteStream(ctx context.Context, name string, when Match) error
}

// Routing shows where a stream's keys go.
type Routing interface {
	// Table returns the routing table in force, as the JSON that is answered.
	Table(ctx context.Context, stream string) (json.RawMessage, error)
	// HotKeys returns the heaviest keys, as the JSON that is answered.
	HotKeys(ctx context.Context, stream string) (json.RawMessage, error)
	// Explain returns where the events of a key from a source go and why, as the JSON that is answered; a nil key is
	// that of events without one. ordering is what a request asks for, "" for nothing.
	Explain(ctx context.Context, stream string, key, source []byte, ordering string) (json.RawMessage, error)
}

// Definition is a stream's definition. As JSON it is the document with name, revision, managed and stored in front.
type Definition struct {
	Name     string
	Revision uint64          // grows with every change, from 1
	Managed  string          // "file", "api", or "gateway" for a dead letter
	Stored   *Stored         // of a list: what the backend holds; nil: not known
	Document json.RawMessage // a JSON object with the keys of the configuration file
}

// Stored is how full a stream is.
type Stored struct {
	Bytes int64 `json:"bytes"`
	Limit int64 `json:"limit"` // its share at the moment; 0: none
}

// MarshalJSON joins the members.
func (d Definition) MarshalJSON() ([]byte, error) {
	name, err := json.Marshal(d.Name)
	if err != nil {
		return nil, err
	}
	doc := bytes.TrimSpace(d.Document)
	if len(doc) < 2 || doc[0] != '{' {
		return nil, fmt.Errorf("stream %q: its document is no JSON object", d.Name)
	}
	out := fmt.Appendf(nil, `{"name":%s,"revision":%d,"managed":%s`, name, d.Revision, strconv.Quote(d.Managed))
	if d.Stored != nil {
		out = fmt.Appendf(out, `,"stored":{"bytes":%d,"limit":%d}`, d.Stored.Bytes, d.Stored.Limit)
	}
	if members := bytes.TrimSpace(doc[1:]); members[0] != '}' {
		out = append(out, ',')
	}
	return append(out, doc[1:]...), nil
}

// documentBytes is the largest document of a stream.
const documentBytes = 1 << 20

func (s *Server) listStreams(w http.ResponseWriter, r *http.Request) error {
	all, err := s.deps.Streams.Streams(r.Context())
	if err != nil {
		return err
	}
	if all == nil {
		all = []Definition{}
	}
	return reply(w, http.StatusOK, map[string]any{"streams": all})
}

func (s *Server) showStream(w http.ResponseWriter, r *http.Request) error {
	d, err := s.deps.Streams.Stream(r.Context(), r.PathValue("stream"))
	if err != nil {
		return err
	}
	w.Header().Set("ETag", ETag(d.Revision))
	return reply(w, http.StatusOK, d)
}

func (s *Server) setStream(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("stream")
	when, err := parseMatch(r.Header)
	if err != nil {
		return err
	}
	body, err := readBody(w, r, "application/json", documentBytes)
	if err != nil {
		return err
	}
	doc, err := plainDocument(name, body)
	if err != nil {
		return err
	}
	d, created, err := s.deps.Streams.SetStream(r.Context(), name, doc, when)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", ETag(d.Revision))
	if created {
		return reply(w, http.StatusCreated, d)
	}
	return reply(w, http.StatusOK, d)
}

// plainDocument takes out the members that are ours, so that what was read can be changed and sent back.
func plainDocument(name string, body []byte) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return nil, event.Problemf(event.MalformedJSON, "a stream's document is a JSON object")
	}
	var given string
	if raw, ok := members["name"]; ok && (json.Unmarshal(raw, &given) != nil || given != name) {
		return nil, event.Problemf(event.BadParameter, "the document names another stream than the path, %q", name)
	}
	for _, ours := range []string{"name", "revision", "managed", "stored"} {
		delete(members, ours)
	}
	return json.Marshal(members)
}

func (s *Server) deleteStream(w http.ResponseWriter, r *http.Request) error {
	when, err := parseMatch(r.Header)
	if err != nil {
		return err
	}
	if err := s.deps.Streams.DeleteStream(r.Context(), r.PathValue("stream"), when); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) table(w http.ResponseWriter, r *http.Request) error {
	doc, err := s.deps.Routing.Table(r.Context(), r.PathValue("stream"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, doc)
}
