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
	Detail string    `json:"detail,omitempty"` // what is wrong, and what to do; with OK, what an operator should know
}

// livez answers as long as the process serves requests at all.
func (s *Server) livez(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, http.StatusOK, map[string]bool{"live": true})
}

// readyz names the failing dependencies and those with a note, and with ?verbose all of them.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	all := s.deps.Health.Dependencies()
	var failing, notes []Dependency
	for _, d := range all {
		switch {
		case !d.OK:
			failing = append(failing, d)
		case d.Detail != "":
			notes = append(notes, d)
		}
	}
	doc := map[string]any{"ready": len(failing) == 0}
	if len(failing) > 0 {
		doc["failing"] = failing
	}
	if len(notes) > 0 {
		doc["notes"] = notes
	}
	if r.URL.Query().Has("verbose") {
		doc["dependencies"] = all
	}
	if len(failing) > 0 {
		return reply(w, http.StatusServiceUnavailable, doc)
	}
	return reply(w, http.StatusOK, doc)
}
