package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

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
	// Change does something with what is in the chain; unknown_plugin when there is nothing to do it with.
	Change(ctx context.Context, stream string, c Change) ([]Activation, error)
}

// Activation is one version of a plugin in a stream's chain. Behind the one in force is the one that is tried, if any.
type Activation struct {
	Plugin    string          `json:"plugin"`
	Digest    string          `json:"digest,omitempty"`     // "sha256:<hex>"; whole when it comes from or goes to Chains
	Config    json.RawMessage `json:"config,omitempty"`     // a JSON object, given to the plugin as it is
	OnError   string          `json:"on_error,omitempty"`   // what becomes of events it fails on: reject, deadletter, pass or default_key=KEY; empty: by the kind of plugin
	Stage     string          `json:"stage,omitempty"`      // active, shadow or canary
	Percent   int             `json:"percent,omitempty"`    // of the producers, for a canary
	OnSuspend string          `json:"on_suspend,omitempty"` // what takes its events when it is suspended: policy or previous; empty: policy

	// Of answers only.
	History    []Earlier   `json:"history,omitempty"`    // versions that were in force before, the last one first
	Suspended  *Suspension `json:"suspended,omitempty"`  // nil: it is not
	Comparison *Comparison `json:"comparison,omitempty"` // of a version that is tried with the one in force
}

// Earlier is a version that was in force.
type Earlier struct {
	Digest    string          `json:"digest"`
	Config    json.RawMessage `json:"config,omitempty"`
	OnError   string          `json:"on_error,omitempty"`
	OnSuspend string          `json:"on_suspend,omitempty"`
}

// Suspension says since when and why a version is not called.
type Suspension struct {
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"`
}

// Comparison is what two versions made of the same events, since the one that is tried is there and the process runs.
type Comparison struct {
	Compared int64  `json:"compared"` // events that both processed
	Differ   Differ `json:"differ"`   // of these
	Failed   int64  `json:"failed"`   // of these, that the one beside failed on: the shadow, or of a canary the active version
	Skipped  int64  `json:"skipped"`  // events that were not compared, to bound the cost

	Nanoseconds       float64 `json:"nanoseconds_per_event"`        // of the version that is tried; 0: not known
	ActiveNanoseconds float64 `json:"active_nanoseconds_per_event"` // of the one in force
}

// Differ is in how many events two versions differ. Keys and values are compared of events that both keep.
type Differ struct {
	Verdicts int64 `json:"verdicts"`
	Keys     int64 `json:"keys"`
	Values   int64 `json:"values"`
}

// Use is a stream in whose chain a version of a plugin is.
type Use struct {
	Stream     string      `json:"stream"`
	Digest     string      `json:"digest,omitempty"` // empty: the newest there will be
	Stage      string      `json:"stage"`
	Percent    int         `json:"percent,omitempty"`
	Suspended  *Suspension `json:"suspended,omitempty"`
	Comparison *Comparison `json:"comparison,omitempty"`
}

// Change is what is done with a chain.
type Change struct {
	Do     Deed
	Plugin string // not of ResetChain
	Stage  string // of Deactivate: only the version in this stage; empty: all
}

// Deed is a kind of change.
type Deed uint8

// What can be done with a chain.
const (
	Deactivate Deed = iota // take the plugin out
	ResetChain             // forget all activations: the chain is that of the stream's definition again
	RollBack               // end the plugin's canary, or put the version before into force
	Promote                // put the version that is tried into force
	Resume                 // call a version again that is suspended
)

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
	a.Stage = cmp.Or(a.Stage, "active")
	if err := a.fit(); err != nil {
		return err
	}
	a.History, a.Suspended, a.Comparison = nil, nil, nil
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

// fit refuses what no stage and no suspension is.
func (a *Activation) fit() error {
	switch canary := a.Stage == "canary"; {
	case !slices.Contains([]string{"active", "shadow", "canary"}, a.Stage):
		return event.Problemf(event.BadParameter, "stage is active, shadow or canary, not %q", a.Stage)
	case canary && (a.Percent < 1 || a.Percent > 100):
		return event.Problemf(event.BadParameter, "percent: a canary needs its share of the producers, 1 to 100 (--percent 10), not %d", a.Percent)
	case !canary && a.Percent != 0:
		return event.Problemf(event.BadParameter, "percent is of a canary, not of stage %s", a.Stage)
	case !slices.Contains([]string{"", "policy", "previous"}, a.OnSuspend):
		return event.Problemf(event.BadParameter, "on_suspend is policy or previous, not %q", a.OnSuspend)
	}
	return nil
}

func (s *Server) reset(w http.ResponseWriter, r *http.Request) error {
	return s.change(w, r, Change{Do: ResetChain})
}

func (s *Server) deactivate(w http.ResponseWriter, r *http.Request) error {
	return s.change(w, r, Change{Do: Deactivate, Plugin: r.PathValue("plugin"), Stage: r.URL.Query().Get("stage")})
}

// steer is the endpoint of a change whose body names the plugin.
func (s *Server) steer(do Deed) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		body, err := readBody(w, r, "application/json", activationBytes)
		if err != nil {
			return err
		}
		var given struct {
			Plugin string `json:"plugin"`
		}
		if err := decodeStrict(body, &given); err != nil {
			return err
		}
		if given.Plugin == "" {
			return event.Problemf(event.BadParameter, `name the plugin: {"plugin": "NAME"}`)
		}
		return s.change(w, r, Change{Do: do, Plugin: given.Plugin})
	}
}

func (s *Server) change(w http.ResponseWriter, r *http.Request, c Change) error {
	chain, err := s.deps.Chains.Change(r.Context(), r.PathValue("stream"), c)
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
