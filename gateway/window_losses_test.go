package gateway

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/internal/settings"
	"github.com/headgate-io/headgate/internal/window"
)

// An event that a loss took is no repetition when it comes again, nor is the request that brought it: whatever was lost.
func TestWhatWasLostIsStoredAgain(t *testing.T) {
	remove := func(pattern string) func(*testing.T, string) {
		return func(t *testing.T, data string) {
			found, err := filepath.Glob(filepath.Join(data, pattern))
			if err != nil || len(found) == 0 {
				t.Fatalf("nothing to lose: %v", err)
			}
			for _, path := range found {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, c := range []struct {
		name, backend, ack string
		lose               func(*testing.T, string)
		asked              bool // the backend is asked for it
	}{
		{"message blocks", config.LocalBackend, "delivered", remove("jetstream/jetstream/*/streams/HEADGATE_s/msgs/*"), false},
		{"the store", config.LocalBackend, "delivered", remove("jetstream/jetstream"), false},
		{"the backend, with what it knew", config.LocalBackend, "delivered", remove("jetstream"), true},
		{"segments of the spool", "away", "durable", remove("spool/s/*.seg"), false},
		{"the spool", "away", "durable", remove("spool/s"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := zero(t)
			cfg.Drain.Timeout = settings.Duration(100e6)
			cfg.Backends["away"] = config.Backend{Webhook: &config.Webhook{Nodes: []string{"http://127.0.0.1:9/"}}}
			cfg.Streams = map[string]config.Stream{"s": {ID: config.ID{JSON: "/id"}, Backend: c.backend}}
			send := func(in *instance, want string, header ...string) {
				t.Helper()
				body := ""
				for i := range 20 {
					body += fmt.Sprintf("{\"id\":%d}\n", i)
				}
				resp, doc := in.once("s/events?ack="+c.ack, body, header...)
				if resp.StatusCode != http.StatusOK || !strings.Contains(doc, want) || resp.Header.Get("Idempotency-Replayed") != "" {
					t.Errorf("%d %s, want %s", resp.StatusCode, doc, want)
				}
			}
			in := start(t, cfg)
			send(in, `"accepted":20`, "Idempotency-Key", "k")
			send(in, `"duplicates":20`)
			in.stop()
			<-in.done
			c.lose(t, cfg.Data)
			in = start(t, cfg)
			if c.asked { // lane by lane, when all is open
				in.until("the loss is found", func() bool { return in.state("s").Finished == 0 })
			}
			send(in, `"accepted":20`, "Idempotency-Key", "k")
			in.stop()
			<-in.done
			in = start(t, cfg)
			send(in, `"duplicates":20`)
			in.stop()
			<-in.done
		})
	}
}

func (in *instance) state(stream string) window.State {
	return (*in.streams.Load())[stream].ids.State(time.Now())
}
