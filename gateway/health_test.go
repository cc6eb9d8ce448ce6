package gateway

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
)

// Q04: a backend that takes nothing for a while makes us not ready, by name and since when, and a fault that keeps no
// event from being taken does not. Neither is a reason to say that the process does not live.
func TestQ04ReadinessNamesWhatFailsAndSinceWhen(t *testing.T) {
	cfg, node := onNode(t, "zstd")
	var down atomic.Bool
	refused := make(chan struct{}, 1)
	node.Judge(func(*forward.Run) forwardtest.Answer {
		if !down.Load() {
			return forwardtest.Answer{}
		}
		select {
		case refused <- struct{}{}:
		default:
		}
		return forwardtest.Answer{Status: 503}
	})
	var ahead atomic.Int64 // of the clock
	in := start(t, cfg)
	defer in.end()
	in.health.mu.Lock()
	stands := time.Now() // so that a moment is one, however long it takes
	in.health.now = func() time.Time { return stands.Add(time.Duration(ahead.Load())) }
	in.health.mu.Unlock()
	ready := func(status int, want ...string) {
		t.Helper()
		got, body := in.call("GET", "http://"+in.addresses.admin.String()+"/readyz", "", "")
		for _, part := range want {
			if got != status || !strings.Contains(body, part) {
				t.Errorf("readyz: %d %s, want %d with %s", got, body, status, part)
			}
		}
		if got, body := in.call("GET", "http://"+in.addresses.admin.String()+"/livez", "", ""); got != 200 {
			t.Errorf("livez: %d %s", got, body)
		}
	}
	ready(200, `"ready":true`)

	down.Store(true)
	if status, a := in.send("web/events?ack=accepted", "application/x-ndjson", `{"k":"a"}`); status != 202 {
		t.Fatalf("%d %+v", status, a)
	}
	<-refused
	in.until("the lane is in trouble", func() bool { code, _ := (*in.streams.Load())["web"].forwarder.Trouble(); return code != "" })
	ready(200, `"ready":true`) // not for a moment
	_, at := (*in.streams.Load())["web"].forwarder.Trouble()
	since := at.UTC().Format(time.RFC3339Nano)
	ahead.Store(int64(time.Hour))
	ready(503, `"ready":false`, `"name":"delivery"`, "stream web: backend_unavailable", `"since":"`+since)

	down.Store(false)
	in.until("the event is on the node", func() bool { return stored(t, node) == `{"k":"a"}` })
	in.until("the lane is out of trouble", func() bool { code, _ := (*in.streams.Load())["web"].forwarder.Trouble(); return code == "" })
	in.stores.control.note = "rebuilt from its copy"
	ready(200, `"ready":true`, "rebuilt from its copy")
}

// until waits for what happens by itself.
func (in *instance) until(what string, done func() bool) {
	in.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			in.t.Fatalf("waited in vain: %s", what)
		}
	}
}
