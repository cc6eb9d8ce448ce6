package gateway

import (
	"strings"
	"testing"

	"github.com/headgate-io/headgate/gateway/config"
)

// A start that is refused leaves the definition of a stream as it was: the next one without the stream in its file goes by it.
func TestARefusedStartLeavesTheDefinition(t *testing.T) {
	cfg := zero(t)
	of := func(n int) map[string]config.Stream {
		return map[string]config.Stream{"web": {Partitions: config.Partitions{Min: n, Max: n}}}
	}
	cfg.Streams = of(8)
	in := start(t, cfg)
	in.want(200, `"accepted":1`, "web", `{"n":1}`)
	in.end()

	cfg.Streams = of(4)
	for name, s := range cfg.Streams {
		cfg.Streams[name] = s.WithDefaults()
	}
	cfg.HTTP.Listen, cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	g, err := New(cfg, Deps{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "partitions") {
		t.Fatalf("a start with fewer partitions ended with %v", err)
	}

	cfg.Streams = nil
	in = start(t, cfg)
	defer in.end()
	in.want(200, `"accepted":1`, "web", `{"n":2}`)
	d, err := in.Stream(t.Context(), "web")
	if err != nil || !strings.Contains(string(d.Document), `"partitions":8`) {
		t.Errorf("%v %s", err, d.Document)
	}
}
