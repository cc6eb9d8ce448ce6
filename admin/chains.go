package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"github.com/headgate-io/headgate/event"
)

// Chains holds which plugins a stream's events go through. Its methods may be called concurrently; errors are
// *event.Problem: unknown_stream, bad_stream_name, unknown_plugin, plugin_failed, bad_configuration.
// What they return is the chain now in force, in order.
type Chains interface {
	Chain(ctx context.Context, stream string) ([]Activation, error)
	// Activate replaces the stream's activation of the same plugin, or appends one; it creates the stream where
	// that is allowed. It returns when the new chain takes events.
	Activate(ctx context.Context, stream string, a Activation) ([]Activation, error)
	// Deactivate takes a plugin out; unknown_plugin when it is not in the chain.
	Deactivate(ctx context.Context, stream, plugin string) ([]Activation, error)
	// Reset forgets all activations: the chain is that of the stream's definition again.
	Reset(ctx context.Context, stream string) ([]Activation, error)
}

// Activation is one plugin in a stream's chain.
type Activation struct {
	Plugin  string          `json:"plugin"`
	Digest  string          `json:"digest,omitempty"`   // "sha256:<hex>"; whole when it comes from or goes to Chains
	Config  json.RawMessage `json:"config,omitempty"`   // any JSON value, given to the plugin as it is
	OnError string          `json:"on_error,omitempty"` // what becomes of events it fails on: reject, deadletter, pass or default_key=KEY; empty: by the kind of plugin
	Stage   string          `json:"stage,omitempty"`    // "active"
}

// activationBytes is the largest activation.
const activationBytes = 1 << 20

func (s *Server) chain(w http.ResponseWriter, r *http.Request) error {
	chain, err := s.deps.Chains.Chain(r.Context(), r.PathValue("stream"))
	return replyChain(w, r, chain, err)
}

func (s *Server) activate(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r, "application/json", activationBytes)
	if err != nil {
		return err
	}
	var given struct {
		Activation
		Name string `json:"name"` // of the plugin, as definitions call it
	}
	if err := decodeStrict(body, &given); err != nil {
		return err
	}
	a := given.Activation
	if a.Plugin != "" && given.Name != "" && a.Plugin != given.Name {
		return event.Problemf(event.BadParameter, "plugin and name are the same, %q is not %q", a.Plugin, given.Name)
	}
	a.Plugin = cmp.Or(a.Plugin, given.Name)
	if a.Plugin == "" {
		return event.Problemf(event.BadParameter, `name the plugin: {"plugin": "NAME"}`)
	}
	switch a.Stage {
	case "", "active":
		a.Stage = "active"
	default:
		return event.Problemf(event.BadParameter, "stage is active, not %q", a.Stage)
	}
	v, err := s.findVersion(r.Context(), a.Plugin, a.Digest)
	if err != nil {
		return err
	}
	a.Digest = v.Digest
	_, before := s.deps.Streams.Stream(r.Context(), r.PathValue("stream"))
	chain, err := s.deps.Chains.Activate(r.Context(), r.PathValue("stream"), a)
	if err == nil && before != nil {
		return reply(w, http.StatusOK, map[string]any{"stream": r.PathValue("stream"), "created": true, "plugins": chain})
	}
	return replyChain(w, r, chain, err)
}

func (s *Server) reset(w http.ResponseWriter, r *http.Request) error {
	chain, err := s.deps.Chains.Reset(r.Context(), r.PathValue("stream"))
	return replyChain(w, r, chain, err)
}

func (s *Server) deactivate(w http.ResponseWriter, r *http.Request) error {
	chain, err := s.deps.Chains.Deactivate(r.Context(), r.PathValue("stream"), r.PathValue("plugin"))
	return replyChain(w, r, chain, err)
}

func replyChain(w http.ResponseWriter, r *http.Request, chain []Activation, err error) error {
	if err != nil {
		return err
	}
	if chain == nil {
		chain = []Activation{}
	}
	return reply(w, http.StatusOK, map[string]any{"stream": r.PathValue("stream"), "plugins": chain})
}
