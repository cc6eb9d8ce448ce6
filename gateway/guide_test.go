package gateway

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
)

// section returns what is below a heading of a page of the guide.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("docs/%s has no section %q", page, heading)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

func contains(t *testing.T, where, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s does not say %s", where, p)
		}
	}
}

// N01: the guide says for each kind of backend that there is what delivered means, on JetStream with which sync and replicas, and
// what becomes of our own copy.
func TestN01DeliveredIsExplained(t *testing.T) {
	text := section(t, "operate.md", "What delivered means")
	kinds := reflect.TypeFor[config.Backend]()
	for i := range kinds.NumField() {
		contains(t, "What delivered means", text, "| `"+kinds.Field(i).Tag.Get("json")+":")
	}
	contains(t, "What delivered means", text, "embedded", "url", "sync_interval", "replicas", "own copy")
}

// M06: the guide has the sizes, the retention and the files of the spool, and metrics show its use in bytes and events.
func TestM06TheSpoolIsExplainedAndShown(t *testing.T) {
	contains(t, "The spool", section(t, "operate.md", "The spool"), "`spool.max_bytes`", "| a file |", "| retention |", "kept free")
	in := start(t, zero(t))
	defer in.end()
	in.want(200, `"accepted":1`, "web", "{}")
	contains(t, "/metrics", strings.Join(in.series(), "\n"), "headgate_spool_bytes", "headgate_spool_events", "headgate_spool_max_bytes")
}

// M10: fsync is the default of a stream, and what is weaker has a name of its own that has to be asked for.
func TestM10DurableIsTheDefault(t *testing.T) {
	if got := (config.Stream{}).WithDefaults().Ack.Default; got != event.Durable.String() {
		t.Errorf("the default is %s", got)
	}
	in := start(t, zero(t))
	defer in.end()
	in.want(200, `"ack":"durable"`, "web", "{}")
	in.want(202, `"ack":"accepted"`, "web?ack=accepted", "{}")
	contains(t, "send-events.md", section(t, "send-events.md", "Query and headers"), "`accepted`: in bounded memory", "`durable`: synced to disk")
}
