package gateway

import (
	"testing"

	"github.com/headgate-io/headgate/gateway/config"
)

// A stream of an earlier start whose backend is no longer configured refuses its requests and says what to do; the others run. With the
// backend again it goes on.
func TestAStreamWhoseBackendIsNotConfiguredRefusesItsRequests(t *testing.T) {
	cfg := zero(t)
	local := cfg.Backends
	cfg.Backends = map[string]config.Backend{"lake": {Webhook: &config.Webhook{Nodes: []string{"http://127.0.0.1:1/"}}}}
	for name, b := range local {
		cfg.Backends[name] = b
	}
	with := cfg.Backends
	cfg.Streams = map[string]config.Stream{"web": {Backend: "lake"}}
	in := start(t, cfg)
	in.want(200, `"accepted":1`, "web", `{"n":1}`)
	in.end()

	cfg.Backends, cfg.Streams = local, nil
	in = start(t, cfg)
	in.want(500, `stream web did not start: its backend lake is not in the configuration: define backends.lake again`, "web", `{"n":2}`)
	in.want(200, `"accepted":1`, "other", `{"n":3}`)
	in.end()

	cfg.Backends = with
	in = start(t, cfg)
	defer in.end()
	in.want(200, `"accepted":1`, "web", `{"n":4}`)
}
