package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestReplayIsKilled kills the gateway in the middle of a replay again and again, and replays what is open then. In the end
// each letter is in its stream, once.
func TestReplayIsKilled(t *testing.T) {
	rounds := 2
	if n, err := strconv.Atoi(os.Getenv("HEADGATE_CRASHES")); err == nil {
		rounds = n
	}
	data := t.TempDir()
	settings := []string{"--set", "streams={web: {partitions: 4, types: [text/plain]}}"}
	p := startGateway(t, data, settings...)
	p.headgate(0, "plugin", "push", "scripted", "../../plugins/testdata/scripted.wasm")
	p.headgate(0, "plugin", "activate", "--stream", "web", "--on-error", "deadletter", "scripted")
	const letters = 6000
	var body bytes.Buffer
	for i := range letters {
		fmt.Fprintf(&body, "t%d\n", i)
	}
	status, answer := p.ask("POST", p.http+"/v1/streams/web/events", "text/plain", body.String())
	if status != 200 || !strings.Contains(answer, fmt.Sprintf(`"deadlettered":%d`, letters)) {
		t.Fatalf("%d %s", status, answer)
	}
	p.headgate(0, "plugin", "deactivate", "--stream", "web", "scripted")
	reconciled := 0
	for range rounds {
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			resp, err := http.Post(p.admin+"/v1/deadletter/web", "application/json", strings.NewReader(`{"action":"replay","all":true,"rate":1000}`))
			if err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}()
		before := p.accepted("web")
		p.until("letters are handed over", func() bool {
			select {
			case <-gone:
				return true
			default:
				return p.accepted("web") > before
			}
		})
		<-time.After(time.Duration(rand.IntN(300)) * time.Millisecond)
		p.kill()
		<-gone
		reconciled += strings.Count(p.log.String(), "an earlier replay was cut off")
		p = startGateway(t, data, settings...)
	}
	out, _ := p.headgate(0, "deadletter", "replay", "web", "--all", "--rate", "100000")
	var sums struct{ Selected, Replayed, Failed, Left int }
	if err := json.Unmarshal([]byte(out), &sums); err != nil || sums.Failed+sums.Left != 0 || sums.Replayed != sums.Selected {
		t.Errorf("%s (%v)", out, err)
	}
	if reconciled += strings.Count(p.log.String(), "an earlier replay was cut off"); reconciled == 0 {
		t.Errorf("no replay was cut off: nothing was tested\n%s", p.log)
	}
	t.Logf("the last replay: %s; cut off and reconciled: %d", out, reconciled)
	if out, _ = p.headgate(0, "deadletter", "list", "web", "-o", "json"); out != "" {
		t.Errorf("open letters after all: %.300s", out)
	}
	seen := map[string]int{}
	for _, r := range p.tail("web") {
		seen[r.Data]++
	}
	for i := range letters {
		if n := seen[fmt.Sprintf("t%d", i)]; n != 1 {
			t.Errorf("t%d is there %d times", i, n)
		}
	}
	if len(seen) != letters {
		t.Errorf("%d events", len(seen))
	}
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log)
	}
}

// accepted is how many events a stream has taken in this process.
func (p *process) accepted(stream string) (n int) {
	p.t.Helper()
	for line := range strings.Lines(p.get("/metrics")) {
		if value, ok := strings.CutPrefix(line, fmt.Sprintf("headgate_accepted_events_total{stream=%q} ", stream)); ok {
			n, _ = strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return n
}
