package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/gateway/config"
)

// sendPart sends the ids of a part, and wants all of them to be counted as want says.
type sendPart func(in *instance, part, want string, header ...string)

// withSmallWindow runs a test with a stream s that remembers 200 ids and takes parts of so many, and one sender: known by its address,
// and known by its token.
func withSmallWindow(t *testing.T, size int, test func(*testing.T, config.Config, sendPart)) {
	const token = "of-the-only-sender"
	for name, auth := range map[string]*config.Auth{
		"address": nil,
		"token":   {Tokens: []config.Token{{ID: "a", Secret: secretRef(t, token), Streams: []string{"*"}, Actions: []string{"send"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := zero(t)
			cfg.Auth = auth
			s := config.Stream{ID: config.ID{JSON: "/id"}}
			s.ID.Window.IDs, s.Limits.Events = 200, size
			cfg.Streams = map[string]config.Stream{"s": s}
			test(t, cfg, func(in *instance, part, want string, header ...string) {
				t.Helper()
				var body strings.Builder
				for i := range size {
					fmt.Fprintf(&body, "{\"id\":\"%s-%d\"}\n", part, i)
				}
				resp, doc := in.once("s/events?ack=delivered", body.String(), append(header, "Authorization", "Bearer "+token)...)
				if want := fmt.Sprintf("%q:%d,", want, size); resp.StatusCode != 200 || !strings.Contains(doc, want) {
					t.Errorf("part %s %v: %d %s, want %s", part, header, resp.StatusCode, doc, want)
				}
			})
		})
	}
}

// F46: in a full window, who goes on after restarts takes the places of its own oldest ids, not of its newest: it is the same owner,
// by its token or by its address.
func TestF46OwnersOfIDsAreTheSameAfterARestart(t *testing.T) {
	const parts, size = 3, 40
	withSmallWindow(t, size, func(t *testing.T, cfg config.Config, send sendPart) {
		for run := range 4 {
			in := start(t, cfg)
			for _, want := range []string{"accepted", "duplicates"} {
				for part := range parts {
					send(in, fmt.Sprint(run, "-", part), want)
				}
			}
			in.end()
		}
	})
}

// F46: a window is full, and ids had to make room within the last seconds. However often the gateway stops uncleanly, those do not come
// back in place of the newest, and a sender does not become another one for each of its sources.
func TestF46NewestIDsAreKnownBehindUncleanStops(t *testing.T) {
	const sources, size, rounds = 10, 20, 3
	withSmallWindow(t, size, func(t *testing.T, cfg config.Config, send sendPart) {
		for run := range 5 {
			in := start(t, cfg)
			for source := sources / 2; source < sources && run > 0; source++ {
				send(in, fmt.Sprint(run-1, "-", rounds-1), "duplicates", "Headgate-Source", fmt.Sprint(source))
			}
			for round := range rounds {
				for source := range sources {
					send(in, fmt.Sprint(run, "-", round), "accepted", "Headgate-Source", fmt.Sprint(source))
				}
			}
			in.end()
			if err := os.WriteFile(filepath.Join(cfg.Data, "window", "unclean"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
}
