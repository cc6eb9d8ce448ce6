package admin

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headgate-io/headgate/event"
)

// Plugins holds the uploaded plugins. Its methods may be called concurrently; errors are *event.Problem:
// unknown_plugin, plugin_in_use.
type Plugins interface {
	// Plugins returns all plugins, by name.
	Plugins(ctx context.Context) ([]Plugin, error)
	Plugin(ctx context.Context, name string) (Plugin, error)
	// Upload admits a module as the newest version of name. When a check fails the error is nil, the version
	// has the checks, and nothing is stored. created is false when exactly this version was there already. The signature
	// is the text of a minisign signature, nil for none.
	Upload(ctx context.Context, name string, wasm, signature []byte) (v Version, created bool, err error)
	// DeletePlugin removes one version, or all with digest "".
	DeletePlugin(ctx context.Context, name, digest string) error
}

// Plugin is a name with its versions.
type Plugin struct {
	Name     string    `json:"name"`
	Versions []Version `json:"versions"`          // newest first
	Streams  []string  `json:"streams,omitempty"` // in whose chains it is
	Uses     []Use     `json:"uses,omitempty"`    // how
}

// Version is one uploaded module.
type Version struct {
	Name      string    `json:"name"`
	Digest    string    `json:"digest"` // "sha256:<hex>"
	Size      int64     `json:"size"`   // bytes
	ABI       string    `json:"abi"`
	Kind      string    `json:"kind"`      // what it may do to events, in words joined by +
	Languages []string  `json:"languages"` // what it was made with, as far as it says
	Checks    []Check   `json:"checks"`
	Created   time.Time `json:"created,omitzero"`
}

// Check is one check of an upload.
type Check struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Code   string `json:"code,omitempty"` // E_... of a failed check
	Detail string `json:"detail,omitempty"`
}

// refusedError is a module that failed its checks.
type refusedError struct {
	problem *event.Problem
	checks  []Check
}

func (e *refusedError) Error() string { return e.problem.Error() }
func (e *refusedError) Unwrap() error { return e.problem }

// passed returns nil, or a *refusedError for a version that failed a check.
func passed(v Version) error {
	var failed []string
	for _, c := range v.Checks {
		if !c.OK {
			failed = append(failed, c.Check)
		}
	}
	if failed == nil {
		return nil
	}
	return &refusedError{event.Problemf(event.PluginRefused, "failed: %s", strings.Join(slices.Compact(failed), ", ")), v.Checks}
}

func (s *Server) upload(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("plugin")
	if slices.Contains([]string{"rollback", "promote", "resume"}, name) {
		return event.Problemf(event.BadParameter, "a plugin cannot be called %s, which is what is done with plugins", name)
	}
	if !validName(name) {
		return event.Problemf(event.BadParameter, "a plugin's name is 1 to 63 of a-z, 0-9, _ and -, and begins with a letter or a digit")
	}
	select {
	case s.uploads <- struct{}{}:
		defer func() { <-s.uploads }()
	default:
		return event.Problemf(event.Overloaded, "other uploads are in progress; try again")
	}
	wasm, err := readBody(w, r, "application/wasm", s.cfg.UploadBytes)
	if err != nil {
		return err
	}
	signature, err := signatureOf(r.Header)
	if err != nil {
		return err
	}
	v, created, err := s.deps.Plugins.Upload(r.Context(), name, wasm, signature)
	if err != nil {
		return err
	}
	if err := passed(v); err != nil {
		return err
	}
	if created {
		w.Header().Set("Location", "/v1/plugins/"+name+"/versions/"+v.Digest)
		return reply(w, http.StatusCreated, v)
	}
	return reply(w, http.StatusOK, v)
}

// signatureHeader has the minisign signature of an upload: its file in base64, because a header has no lines.
const signatureHeader = "Headgate-Signature"

func signatureOf(h http.Header) ([]byte, error) {
	text, err := base64.StdEncoding.DecodeString(h.Get(signatureHeader))
	if err != nil || len(h.Values(signatureHeader)) > 1 {
		return nil, event.Problemf(event.BadParameter, "%s takes the file that minisign made, in base64, once: $(base64 -w0 FILE.minisig)", signatureHeader)
	}
	return text, nil
}

// validName follows the rule for names of streams.
func validName(name string) bool {
	if name == "" || len(name) > 63 || name[0] == '_' || name[0] == '-' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

func (s *Server) listPlugins(w http.ResponseWriter, r *http.Request) error {
	all, err := s.deps.Plugins.Plugins(r.Context())
	if err != nil {
		return err
	}
	if all == nil {
		all = []Plugin{}
	}
	return reply(w, http.StatusOK, map[string]any{"plugins": all})
}

func (s *Server) showPlugin(w http.ResponseWriter, r *http.Request) error {
	p, err := s.deps.Plugins.Plugin(r.Context(), r.PathValue("plugin"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, p)
}

func (s *Server) showVersion(w http.ResponseWriter, r *http.Request) error {
	v, err := s.findVersion(r.Context(), r.PathValue("plugin"), r.PathValue("digest"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, v)
}

func (s *Server) deletePlugin(w http.ResponseWriter, r *http.Request) error {
	return s.remove(w, r, "")
}

func (s *Server) deleteVersion(w http.ResponseWriter, r *http.Request) error {
	v, err := s.findVersion(r.Context(), r.PathValue("plugin"), r.PathValue("digest"))
	if err != nil {
		return err
	}
	return s.remove(w, r, v.Digest)
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request, digest string) error {
	if err := s.deps.Plugins.DeletePlugin(r.Context(), r.PathValue("plugin"), digest); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
