package gateway

import (
	"fmt"
	"testing"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
)

func TestPurgeKeepsTheLastRunOfEachLane(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"web": {Partitions: config.Partitions{Max: 1}}, "out": {Backend: "lake"}}
	cfg.Backends["lake"] = config.Backend{Webhook: &config.Webhook{Nodes: []string{"http://127.0.0.1:1"}}}
	in := start(t, cfg)
	defer in.end()
	for range 3 { // each a run of its own
		if status, a := in.send("web/events?ack=delivered", "application/json", "{}"); status != 200 {
			t.Fatalf("%d %+v", status, a)
		}
	}
	keep := uint64(2)
	for _, c := range []struct {
		order admin.PurgeOrder
		gone  uint64
	}{{admin.PurgeOrder{OlderThan: "7d"}, 0}, {admin.PurgeOrder{Keep: &keep}, 1}, {admin.PurgeOrder{OlderThan: "0s"}, 1}} {
		if gone, err := in.Purge(t.Context(), "web", c.order); err != nil || gone != c.gone {
			t.Errorf("%+v: %d gone, %v; want %d", c.order, gone, err, c.gone)
		}
	}
	in.want(200, `"accepted":1`, "web", "{}")
	if rows := in.rows("web"); len(rows) != 2 || rows[0].Number != 3 || rows[1].Number != 4 {
		t.Errorf("%+v", rows)
	}
	_, err := in.Purge(t.Context(), "web", admin.PurgeOrder{OlderThan: "soon"})
	wantCode(t, err, event.BadParameter)
	_, err = in.Purge(t.Context(), "nope", admin.PurgeOrder{OlderThan: "1d"})
	wantCode(t, err, event.UnknownStream)
	_, err = in.Purge(t.Context(), "out", admin.PurgeOrder{OlderThan: "1d"})
	wantCode(t, err, event.NotReadable)
}

// TestSmallerMaxBytes: all 32 streams start under less space than they were made with, and go on.
func TestSmallerMaxBytes(t *testing.T) {
	cfg := zero(t)
	in := start(t, cfg)
	for i := range config.MaxStreams {
		in.want(200, `"accepted":1`, fmt.Sprintf("s%d", i), "{}")
	}
	in.end()
	cfg.Backends[config.LocalBackend].JetStream.MaxBytes = 64 << 20
	in = start(t, cfg)
	defer in.end()
	sum := int64(0)
	for i := range config.MaxStreams {
		name := fmt.Sprintf("s%d", i)
		in.want(200, `"accepted":1`, name, "{}")
		state, err := in.stores.buses[config.LocalBackend].reader.State(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		sum += state.MaxBytes
	}
	if sum > 64<<20 {
		t.Errorf("limits of %d in all", sum)
	}
}
