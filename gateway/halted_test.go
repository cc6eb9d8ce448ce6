package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
)

// A node that refuses event after event gets no more of them set aside: readiness names the partition, and an operator, or the
// node that takes the event at hand, lets it go on.
func TestALaneThatSetsTooMuchAsideStops(t *testing.T) {
	cfg, node := onNode(t, "zstd")
	node.Judge(func(*forward.Run) forwardtest.Answer { return forwardtest.Answer{Status: 422, Body: "no"} })
	in := start(t, cfg)
	defer in.end()
	resume := func() string {
		_, doc := in.call("POST", fmt.Sprintf("http://%s/v1/streams/web/resume", in.addresses.admin), "", "")
		return doc
	}
	if doc := resume(); !strings.Contains(doc, `{"resumed_partitions":0}`) {
		t.Error(doc)
	}
	in.want(200, `"accepted":250`, "web", strings.Repeat(`{"k":"one"}`+"\n", 250))
	halted := func() bool {
		status, doc := in.call("GET", fmt.Sprintf("http://%s/readyz", in.addresses.admin), "", "")
		return status == 503 && strings.Contains(doc, "headgate stream resume web")
	}
	in.until("the lane stops", halted)
	if n := len(in.deadLetters("web")); n != 100 {
		t.Errorf("%d letters", n)
	}
	if series := strings.Join(in.series(), "\n"); !strings.Contains(series, "headgate_delivery_halted_partitions") {
		t.Error("no metric for it")
	}
	if doc := resume(); !strings.Contains(doc, `{"resumed_partitions":1}`) {
		t.Error(doc)
	}
	in.until("another hundred are set aside", func() bool { return len(in.deadLetters("web")) == 200 && halted() })
	node.Judge(func(*forward.Run) forwardtest.Answer { return forwardtest.Answer{} })
	in.delivered()
	if got := strings.Count(stored(t, node), "one"); got != 50 {
		t.Errorf("%d events are on the node", got)
	}
	if code, _ := (*in.streams.Load())["web"].forwarder.Trouble(); code != event.Code("") || halted() {
		t.Errorf("still in trouble: %q", code)
	}
}
