package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
	"github.com/headgate-io/headgate/internal/settings"
)

// head sends the head of a request with a body of 10 MiB, of which no byte follows, and returns the answer.
func (in *instance) head(more string) (*http.Response, string) {
	in.t.Helper()
	c, err := net.Dial("tcp", in.addresses.http.String())
	if err != nil {
		in.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	fmt.Fprintf(c, "POST /v1/streams/web/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n%s\r\n", 10<<20, more)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		in.t.Fatal(err)
	}
	doc, err := io.ReadAll(resp.Body)
	if err != nil {
		in.t.Fatal(err)
	}
	return resp, string(doc)
}

// B04, H09 (c), F02: with a full spool and a dead backend the head of a request is answered, whatever was acknowledged is there
// later, and an event counts against the node's limit as what it is sent as.
func TestB04AFullSpoolAnswersTheHead(t *testing.T) {
	cfg, node := onNode(t, "none")
	node.Judge(func(*forward.Run) forwardtest.Answer { return forwardtest.Answer{Status: 503} })
	cfg.Spool.MaxBytes = 2 << 20
	cfg.Backends["lake"].Webhook.Timeout = settings.Duration(time.Second)
	in := start(t, cfg)
	defer in.end()
	taken := 0
	line := fmt.Sprintf("{\"k\":\"a\",\"n\":%%d,\"x\":%q}\n", strings.Repeat("x", 64<<10))
	for status := 200; status == 200; {
		if status, _ = in.post("web", fmt.Sprintf(line, taken)); status == 200 {
			taken++
		}
	}
	for _, more := range []string{"", "Expect: 100-continue\r\n"} {
		resp, doc := in.head(more)
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(doc, `"spool_full"`) || !strings.Contains(doc, `"stored":"no"`) {
			t.Errorf("%q: %d %v %s", more, resp.StatusCode, resp.Header, doc)
		}
	}
	for _, level := range []string{"accepted", "durable", "delivered"} {
		if status, doc := in.post("web?ack="+level, `{}`); status != 503 || !strings.Contains(doc, `"spool_full"`) || !strings.Contains(doc, `"stored":"no"`) {
			t.Errorf("%s: %d %s", level, status, doc)
		}
	}
	node.Judge(nil)
	in.delivered()
	if got := strings.Count(stored(t, node), `"n":`); got != taken {
		t.Errorf("%d events were acknowledged, %d are on the node", taken, got)
	}
	in.want(200, `"accepted":1`, "web", `{}`)
}

// F02: an event that is larger than what the node takes, and smaller when it is compressed, is delivered.
func TestF02WhatIsSentCounts(t *testing.T) {
	cfg, node := onNode(t, "zstd")
	const most = 100_000
	node.Judge(func(run *forward.Run) forwardtest.Answer {
		if len(run.Payload) > most {
			return forwardtest.Answer{Status: 413}
		}
		return forwardtest.Answer{}
	})
	in := start(t, cfg)
	defer in.end()
	event := fmt.Sprintf(`{"k":"a","x":%q}`, strings.Repeat("x", most+1))
	status, a := in.send("web/events?ack=delivered", "application/x-ndjson", strings.Repeat(event+"\n", 20))
	if status != 200 || a.Accepted != 20 || a.DeadLettered != 0 {
		t.Errorf("%d %+v", status, a)
	}
	if got := strings.Count(stored(t, node), event); got != 20 {
		t.Errorf("%d are on the node", got)
	}
}

// O05: what a node may answer for a while is retried, in turn and as often as it takes.
func TestO05TheForwarderRetries(t *testing.T) {
	cfg, node := onNode(t, "zstd")
	in := start(t, cfg)
	defer in.end()
	var turns []forwardtest.Answer
	for _, status := range []int{408, 425, 429, 502, 503, 504, 500} {
		turns = append(turns, forwardtest.Answer{Status: status})
	}
	node.Script(turns...)
	if status, a := in.send("web/events?ack=delivered", "application/x-ndjson", `{"k":"a"}`); status != 200 || a.Accepted != 1 {
		t.Errorf("%d %+v", status, a)
	}
	if got := stored(t, node); got != `{"k":"a"}` || node.Posts() != len(turns)+1 {
		t.Errorf("%q after %d posts", got, node.Posts())
	}
}
