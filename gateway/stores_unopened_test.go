package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/gateway/config"
)

// M09, F13: a store of the embedded backend that does not open is kept aside, and a new one has what the tail of the spool still
// holds, under the same numbers.
func TestM09AStoreThatDoesNotOpenIsSetAside(t *testing.T) {
	for _, how := range []string{"does not open", "did not open in time"} {
		cfg := zero(t)
		cfg.Backends[config.LocalBackend].JetStream.Tail = "on"
		cfg.Streams = map[string]config.Stream{"web": {Partitions: config.Partitions{Max: 1}}}
		in := start(t, cfg)
		for i := range 5 {
			in.want(200, `"accepted":1`, "web?ack=delivered", fmt.Sprintf(`{"n":%d}`, i))
		}
		in.end()
		err := os.WriteFile(filepath.Join(cfg.Data, stuckName), nil, 0o600)
		if how == "does not open" {
			store := filepath.Join(cfg.Data, "jetstream", "jetstream")
			err = os.RemoveAll(store)
			if err == nil {
				err = os.WriteFile(store, []byte("no folder"), 0o600)
			}
			os.Remove(filepath.Join(cfg.Data, stuckName))
		}
		if err != nil {
			t.Fatal(err)
		}
		in = start(t, cfg)
		in.want(200, `"accepted":1`, "web?ack=delivered", `{"n":5}`)
		var got []string
		for _, r := range in.rows("web") {
			got = append(got, fmt.Sprint(r.Number, string(r.Data)))
		}
		if len(got) != 6 || got[0] != `1{"n":0}` || got[4] != `5{"n":4}` {
			t.Errorf("%s: %v", how, got)
		}
		if kept, _ := filepath.Glob(filepath.Join(cfg.Data, "jetstream.unopened-*")); len(kept) != 1 {
			t.Errorf("%s: kept aside: %v", how, kept)
		}
		if !slices.ContainsFunc(in.Dependencies(), func(d admin.Dependency) bool { return strings.Contains(d.Detail, "did not open") }) {
			t.Errorf("%s: %+v", how, in.Dependencies())
		}
		in.end()
		in = start(t, cfg) // as any other
		if n := len(in.rows("web")); n != 6 {
			t.Errorf("%s: %d events", how, n)
		}
		in.end()
	}
}
