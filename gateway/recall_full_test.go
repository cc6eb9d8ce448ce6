package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/gateway/config"
)

// F46: a window is full, and ids had to make room within the last seconds. However often the gateway stops uncleanly, those do not come
// back in place of the newest, and a sender does not become another one for each of its sources.
func TestF46NewestIDsAreKnownBehindUncleanStops(t *testing.T) {
	const limit, sources, size, rounds, token = 200, 10, 20, 3, "of-the-only-sender"
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
			send := func(in *instance, run, round, source int, want string) {
				t.Helper()
				var body strings.Builder
				for i := range size {
					fmt.Fprintf(&body, "{\"id\":\"%d-%d-%d\"}\n", run, round, i)
				}
				resp, doc := in.once("s/events?ack=delivered", body.String(), "Authorization", "Bearer "+token, "Headgate-Source", fmt.Sprint(source))
				if want := fmt.Sprintf("%q:%d,", want, size); resp.StatusCode != 200 || !strings.Contains(doc, want) {
					t.Errorf("run %d, round %d, source %d: %d %s, want %s", run, round, source, resp.StatusCode, doc, want)
				}
			}
			for run := range 5 {
				in := start(t, cfg)
				for source := sources / 2; source < sources && run > 0; source++ {
					send(in, run-1, rounds-1, source, "duplicates")
				}
				for round := range rounds {
					for source := range sources {
						send(in, run, round, source, "accepted")
					}
				}
				in.end()
				if err := os.WriteFile(filepath.Join(cfg.Data, "window", "unclean"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
