package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/gateway/config"
)

// F46: in a full window, who goes on after restarts takes the places of its own oldest ids, not of its newest: it is the same owner,
// by its token or by its address.
func TestF46OwnersOfIDsAreTheSameAfterARestart(t *testing.T) {
	const limit, parts, size, token = 200, 3, 40, "of-the-only-sender"
	for name, auth := range map[string]*config.Auth{
		"address": nil,
		"token":   {Tokens: []config.Token{{ID: "a", Secret: secretRef(t, token), Streams: []string{"*"}, Actions: []string{"send"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := zero(t)
			cfg.Auth = auth
			s := config.Stream{ID: config.ID{JSON: "/id"}}
			s.ID.Window.IDs, s.Limits.Events = limit, size
			cfg.Streams = map[string]config.Stream{"s": s}
			for run := range 4 {
				in := start(t, cfg)
				for _, want := range []string{"accepted", "duplicates"} {
					for part := range parts {
						var body strings.Builder
						for i := range size {
							fmt.Fprintf(&body, "{\"id\":\"%d-%d-%d\"}\n", run, part, i)
						}
						resp, doc := in.once("s/events?ack=delivered", body.String(), "Authorization", "Bearer "+token)
						if want := fmt.Sprintf("%q:%d,", want, size); resp.StatusCode != 200 || !strings.Contains(doc, want) {
							t.Errorf("run %d, part %d: %d %s, want %s", run, part, resp.StatusCode, doc, want)
						}
					}
				}
				in.end()
			}
		})
	}
}
