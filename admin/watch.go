package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/headgate-io/headgate/event"
)

// Watcher tells what happens to routing tables. It is called concurrently.
type Watcher interface {
	// Watch calls tell with what has happened lately, and with follow what happens from then on, until ctx ends or tell
	// returns an error, which it returns. An empty stream is all of them. Errors of its own are *event.Problem.
	Watch(ctx context.Context, stream string, follow bool, tell func(Notice) error) error
}

// Notice is one thing that happened.
type Notice struct {
	Name string          // the kind of a change, limit, unlimit, note, or load
	Data json.RawMessage // in one line
}

// hotKeys answers the heaviest keys of a stream.
func (s *Server) hotKeys(w http.ResponseWriter, r *http.Request) error {
	doc, err := s.deps.Routing.HotKeys(r.Context(), r.PathValue("stream"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, doc)
}

// watch answers what happens as server-sent events (HTML standard, section 9.2).
func (s *Server) watch(w http.ResponseWriter, r *http.Request) error {
	stream, follow, err := watchQuery(r)
	if err != nil {
		return err
	}
	ctx, end, err := s.reading(r)
	if err != nil {
		return err
	}
	defer end()
	f := &feed{w: w, control: http.NewResponseController(w), mediaType: eventStream, left: 1}
	err = s.deps.Watcher.Watch(ctx, stream, follow, func(n Notice) error {
		if err := f.start(); err != nil {
			return err
		}
		f.buf = append(f.buf, "event: "+n.Name+"\ndata: "...)
		f.buf = append(append(f.buf, n.Data...), "\n\n"...)
		return f.flush()
	})
	var p *event.Problem
	if !f.started && errors.As(err, &p) {
		return err
	}
	_ = f.start() // there was nothing to tell, or the client is gone
	return nil
}

const eventStream = "text/event-stream"

func watchQuery(r *http.Request) (stream string, follow bool, err error) {
	follow = true
	for name, list := range r.URL.Query() {
		ok := len(list) == 1
		switch {
		case ok && name == "stream":
			stream = list[0]
		case ok && name == "follow":
			var bad error
			follow, bad = strconv.ParseBool(list[0])
			ok = bad == nil
		default:
			ok = false
		}
		if !ok {
			return "", false, event.Problemf(event.BadParameter, "give stream=NAME for one stream only, and follow=false for what has happened until now, each once")
		}
	}
	return stream, follow, nil
}
