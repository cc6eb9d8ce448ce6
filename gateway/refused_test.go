package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/internal/settings"
)

// onNode is a configuration with the stream web on one HTTP node.
func onNode(t *testing.T, codec string) (config.Config, *forwardtest.Receiver) {
	node := forwardtest.NewReceiver(t)
	cfg := zero(t)
	cfg.Backends["lake"] = config.Backend{Webhook: &config.Webhook{Nodes: []string{node.URL}}}
	cfg.Streams = map[string]config.Stream{"web": {Backend: "lake", Codec: codec, Key: config.Key{JSON: "/k"}, Limits: config.Limits{Event: 4 << 20}}}
	return cfg, node
}

func stored(t *testing.T, node *forwardtest.Receiver) string {
	return strings.Join(forwardtest.Events(t, node.Runs()...), "\n")
}

// E07, F21: of a hundred events the node refuses one for good, after batching and compression. It is in the dead letter
// before the answer says so, and everything else is on the node.
func TestE07TheEventThatANodeRefusesIsDeadLettered(t *testing.T) {
	for _, codec := range []string{"zstd", "none"} {
		cfg, node := onNode(t, codec)
		node.Judge(func(run *forward.Run) forwardtest.Answer {
			if forwardtest.Contains(t, run, "poison") {
				return forwardtest.Answer{Status: 422, Body: "no such field"}
			}
			return forwardtest.Answer{}
		})
		in := start(t, cfg)
		var body strings.Builder
		for i := range 100 {
			word := "fine"
			if i == 42 {
				word = "poison"
			}
			fmt.Fprintf(&body, "{\"k\":\"key-%d\",\"n\":%d,\"word\":%q}\n", i%3, i, word)
		}
		status, a := in.send("web/events?ack=delivered", "application/x-ndjson", body.String())
		if status != 200 || a.Accepted != 99 || a.DeadLettered != 1 || a.Rejected != 0 || !slices.Equal(a.DeadLetters, []int{42}) {
			t.Errorf("%s: %d %+v", codec, status, a)
		}
		got := in.deadLetters("web")
		if len(got) != 1 || got[0].Data != `{"k":"key-0","n":42,"word":"poison"}` {
			t.Fatalf("%s: the dead letter has %+v", codec, got)
		}
		at := got[0].Attributes
		if at["index"] != "42" || at["batch_id"] != a.BatchID || at["code"] != "backend_refused" || at["producer"] != "127.0.0.1" ||
			at["partition"] == "" || at["number"] == "" || !strings.Contains(at["reason"], `422 Unprocessable Entity: "no such field"`) {
			t.Errorf("%s: attributes %v", codec, at)
		}
		if hasKey := got[0].Key != nil && *got[0].Key == "key-0"; hasKey != (codec == "zstd") {
			t.Errorf("%s: key %v", codec, got[0].Key)
		}
		if n := strings.Count(stored(t, node), "\n") + 1; n != 99 {
			t.Errorf("%s: the node holds %d events, want 99", codec, n)
		}
		in.end()
	}
}

// F01: a node that takes no more than 1 MiB at once.
func TestF01OnlyWhatIsTooLargeAloneIsDeadLettered(t *testing.T) {
	cfg, node := onNode(t, "none")
	s := cfg.Streams["web"]
	s.Frame.Bytes, s.Linger.Waiting = 4<<20, settings.Duration(50e6)
	cfg.Streams["web"] = s
	node.Judge(func(run *forward.Run) forwardtest.Answer {
		if len(run.Payload) > 1<<20 {
			return forwardtest.Answer{Status: 413}
		}
		return forwardtest.Answer{}
	})
	in := start(t, cfg)
	defer in.end()
	var body, want strings.Builder
	for i := range 60 {
		line := fmt.Sprintf(`{"k":"one","n":%d,"pad":%q}`+"\n", i, strings.Repeat("x", 50<<10))
		if i == 30 {
			line = fmt.Sprintf(`{"k":"one","n":%d,"pad":%q}`+"\n", i, strings.Repeat("y", 2<<20))
		} else {
			want.WriteString(line)
		}
		body.WriteString(line)
	}
	status, a := in.send("web/events?ack=delivered", "application/x-ndjson", body.String())
	if status != 200 || a.Accepted != 59 || a.DeadLettered != 1 {
		t.Errorf("%d %+v", status, a)
	}
	if got := in.deadLetters("web"); len(got) != 1 || got[0].Attributes["index"] != "30" || got[0].Attributes["code"] != "event_too_large" || len(got[0].Data) < 2<<20 {
		t.Errorf("%d letters", len(got))
	}
	if got := stored(t, node) + "\n"; got != want.String() {
		t.Error("the node holds other events, or in another order")
	}
}

// What is refused while the gateway drains is safe before it stops.
func TestDrainEndsWithTheDeadLetters(t *testing.T) {
	cfg, node := onNode(t, "zstd")
	arrived, release := make(chan struct{}), make(chan struct{})
	refused := forwardtest.Answer{Status: 422}
	node.Script(forwardtest.Answer{Status: 422, Arrived: arrived, After: release})
	node.Judge(func(*forward.Run) forwardtest.Answer { return refused })
	in := start(t, cfg)
	if status, a := in.send("web/events?ack=accepted", "application/x-ndjson", `{"k":1}`); status != 202 || a.Accepted != 1 {
		t.Errorf("%d %+v", status, a)
	}
	<-arrived
	in.stop()
	close(release)
	in.end()
	in = start(t, cfg)
	defer in.end()
	if got := in.deadLetters("web"); len(got) != 1 || got[0].Data != `{"k":1}` {
		t.Errorf("%+v", got)
	}
}
