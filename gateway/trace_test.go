package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
)

// What names a request in traces and logs goes with its events, into the dead letter too, and back in the answer.
func TestTraceGoesWithTheEvents(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	in.want(200, "", "s", "{}\n")
	in.scriptedPlugin("s", "script")
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	resp, _ := in.once("s/events?ack=delivered", "0kept\nttrap\n", "Content-Type", "text/plain", "traceparent", trace, "tracestate", "a=1", "X-Request-Id", "r-1")
	h := resp.Header
	if resp.StatusCode != 200 || h.Get("Traceparent") != trace || h.Get("Tracestate") != "a=1" || h.Get("X-Request-Id") != "r-1" {
		t.Errorf("%d %v", resp.StatusCode, h)
	}
	with := fmt.Sprintf(`"traceparent":%q,"tracestate":"a=1","request_id":"r-1"`, trace)
	for stream, n := range map[string]int{"s": 1, "s" + event.DeadLetterSuffix: 1} {
		_, lines := in.call("GET", fmt.Sprintf("http://%s/v1/streams/%s/events", in.addresses.admin, stream), "", "")
		if strings.Count(lines, with) != n || strings.Count(lines, "request_id") != n {
			t.Errorf("%s: %s", stream, lines)
		}
	}
}
