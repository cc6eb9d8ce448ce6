package gateway

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Every metric of the gateway is in the guide, and every metric in the guide exists.
func TestEveryMetricIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "operate.md"))
	if err != nil {
		t.Fatal(err)
	}
	in := start(t, zero(t))
	defer in.end()
	descriptions := make(chan *prometheus.Desc, 1000)
	in.metrics.Describe(descriptions)
	close(descriptions)
	there := map[string]bool{}
	for d := range descriptions {
		if name := regexp.MustCompile(`fqName: "(headgate_\w+)"`).FindStringSubmatch(d.String()); name != nil {
			there[name[1]] = true
		}
	}
	if len(there) < 20 {
		t.Fatalf("found %d metrics", len(there))
	}
	for name := range there {
		if !regexp.MustCompile("`" + name + "[`{]").Match(text) {
			t.Errorf("%s is not in docs/operate.md", name)
		}
	}
	for _, m := range regexp.MustCompile("`(headgate_\\w+)[`{]").FindAllStringSubmatch(string(text), -1) {
		if !there[m[1]] && !strings.HasPrefix(m[1], "headgate_tls_") && !strings.HasPrefix(m[1], "headgate_stored_") { // with TLS, after damage
			t.Errorf("docs/operate.md has %s, which does not exist", m[1])
		}
	}
}
