package admin

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/openapi"
)

// endpoint answers one method of one path; an error is answered by fail, so it is only returned while nothing
// has been written.
type endpoint func(w http.ResponseWriter, r *http.Request) error

// methods are the endpoints of one path by method; HEAD is answered by GET.
type methods map[string]endpoint

// calls is the table of all there are; internal/openapi describes each.
func (s *Server) calls() map[string]methods {
	return map[string]methods{
		"/livez":        {"GET": s.livez},
		"/readyz":       {"GET": s.readyz},
		"/version":      {"GET": s.version},
		"/metrics":      {"GET": s.metrics()},
		"/openapi.json": {"GET": s.describe},

		"/v1/streams":                           {"GET": s.listStreams},
		"/v1/streams/{stream}":                  {"GET": s.showStream, "PUT": s.setStream, "DELETE": s.deleteStream},
		"/v1/streams/{stream}/table":            {"GET": s.table},
		"/v1/streams/{stream}/hotkeys":          {"GET": s.hotKeys},
		"/v1/streams/{stream}/explain":          {"GET": s.explain},
		"/v1/streams/{stream}/events":           {"GET": s.events},
		"/v1/streams/{stream}/purge":            {"POST": s.purge},
		"/v1/streams/{stream}/resume":           {"POST": s.resume},
		"/v1/streams/{stream}/plugins":          {"GET": s.chain, "POST": s.activate, "DELETE": s.reset},
		"/v1/streams/{stream}/plugins/rollback": {"POST": s.steer(RollBack)},
		"/v1/streams/{stream}/plugins/promote":  {"POST": s.steer(Promote)},
		"/v1/streams/{stream}/plugins/resume":   {"POST": s.steer(Resume)},
		"/v1/streams/{stream}/plugins/{plugin}": {"DELETE": s.deactivate},

		"/v1/deadletter/{stream}":          {"GET": s.deadLetter, "POST": s.steerLetters},
		"/v1/deadletter/{stream}/{letter}": {"GET": s.showLetter},

		"/v1/watch": {"GET": s.watch},

		"/v1/plugins":                            {"GET": s.listPlugins},
		"/v1/plugins/{plugin}":                   {"GET": s.showPlugin, "PUT": s.upload, "DELETE": s.deletePlugin},
		"/v1/plugins/{plugin}/test":              {"POST": s.tryPlugin},
		"/v1/plugins/{plugin}/logs":              {"GET": s.logs},
		"/v1/plugins/{plugin}/versions/{digest}": {"GET": s.showVersion, "DELETE": s.deleteVersion},
	}
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for path, m := range s.calls() {
		mux.Handle(path, s.permit(path, s.route(m)))
	}
	mux.Handle("/", s.permit("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, event.Problemf(event.NotFound, "there is no %s here; /openapi.json describes what there is", r.URL.Path))
	})))
	return mux
}

// route chooses by method and refuses the others with the methods there are.
func (s *Server) route(m methods) http.Handler {
	allow := strings.Join(slices.Sorted(maps.Keys(m)), ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		answer, ok := m[method]
		if !ok {
			w.Header().Set("Allow", allow)
			s.fail(w, r, event.Problemf(event.MethodNotAllowed, "%s takes %s", r.URL.Path, allow))
			return
		}
		if err := answer(w, r); err != nil {
			s.fail(w, r, err)
		}
	})
}

func (s *Server) metrics() endpoint {
	h := promhttp.HandlerFor(s.deps.Metrics, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	return func(w http.ResponseWriter, r *http.Request) error {
		h.ServeHTTP(w, r)
		return nil
	}
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, http.StatusOK, s.cfg.Build)
}

// describe answers the description of all calls.
func (s *Server) describe(w http.ResponseWriter, _ *http.Request) error {
	doc, err := openapi.Document(s.cfg.Build.Version)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, json.RawMessage(doc))
}
