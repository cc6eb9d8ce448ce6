package admin

import (
	"net/http"

	"github.com/headgate-io/headgate/event"
)

// Auth knows who may look and who may steer. It is called concurrently.
type Auth interface {
	// Permit returns an *event.Problem, unauthorized or forbidden, unless a caller with this value of the header
	// Authorization may do the action, read or admin. The stream is empty when the call is about none, or about several.
	Permit(authorization, action, stream string) error
}

// The actions of Auth.
const (
	actionRead  = "read"  // see what there is, events too
	actionAdmin = "admin" // change it
)

// open reports whether a path is for everybody: what probes and scrapers ask, and nothing in it is secret.
func open(path string) bool { return path == "/livez" || path == "/readyz" || path == "/metrics" }

// permit lets through to next who may do what a request of the path's pattern asks for.
func (s *Server) permit(pattern string, next http.Handler) http.Handler {
	if s.deps.Auth == nil || open(pattern) {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		action := actionAdmin
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			action = actionRead
		}
		var err error
		if all := r.Header.Values("Authorization"); len(all) > 1 {
			err = event.Problemf(event.Unauthorized, "send Authorization once")
		} else {
			err = s.deps.Auth.Permit(r.Header.Get("Authorization"), action, r.PathValue("stream"))
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}
