package admin

import (
	"net/http"
	"time"
)

// Health says whether the gateway can take events.
type Health interface {
	// Dependencies returns what taking events depends on, in a fixed order. It answers from memory and does
	// not block. Being throttled alone is no failure.
	Dependencies() []Dependency
}

// Dependency is one thing that readiness depends on.
type Dependency struct {
	Name   string    `json:"name"`
	OK     bool      `json:"ok"`
	Since  time.Time `json:"since"`            // of the state it is in
	Detail string    `json:"detail,omitempty"` // what is wrong, and what to do
}

// livez answers as long as the process serves requests at all.
func (s *Server) livez(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, http.StatusOK, map[string]bool{"live": true})
}

// readyz names the failing dependencies, and with ?verbose all of them.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	all := s.deps.Health.Dependencies()
	var failing []Dependency
	for _, d := range all {
		if !d.OK {
			failing = append(failing, d)
		}
	}
	doc := map[string]any{"ready": len(failing) == 0}
	if len(failing) > 0 {
		doc["failing"] = failing
	}
	if r.URL.Query().Has("verbose") {
		doc["dependencies"] = all
	}
	if len(failing) > 0 {
		return reply(w, http.StatusServiceUnavailable, doc)
	}
	return reply(w, http.StatusOK, doc)
}
