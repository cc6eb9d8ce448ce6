package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// picky is an HTTP node that refuses what contains poison, and keeps the lines of what it takes, once for each Idempotency-Key.
type picky struct {
	mu    sync.Mutex
	keys  map[string]bool
	lines map[string]int
	posts int
	twice int
}

func (n *picky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.posts++
	switch key := r.Header.Get("Idempotency-Key"); {
	case bytes.Contains(body, []byte("poison")):
		w.WriteHeader(http.StatusUnprocessableEntity)
	case n.keys[key]:
		n.twice++
	default:
		n.keys[key] = true
		for line := range strings.Lines(string(body)) {
			n.lines[strings.TrimSpace(line)]++
		}
	}
}

func (n *picky) seen() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.posts
}

// F01, F21: killed again and again while it halves what a node refuses, it loses no event, and sets none aside that the node
// takes; the node gets nothing twice but under the same Idempotency-Key, and no refused event is set aside twice.
func TestF21KilledWhileItHalves(t *testing.T) {
	rounds := 2
	if n, err := strconv.Atoi(os.Getenv("HEADGATE_CRASHES")); err == nil {
		rounds = n
	}
	node := &picky{keys: map[string]bool{}, lines: map[string]int{}}
	server := httptest.NewServer(node)
	defer server.Close()
	data := t.TempDir()
	settings := []string{"--set", fmt.Sprintf("backends={lake: {webhook: {nodes: [%s]}}}", server.URL), "--set", "streams={web: {backend: lake, codec: none, partitions: 1}}"}
	p := startGateway(t, data, settings...)
	var body bytes.Buffer
	const events = 3000
	poison := 0
	for i := range events {
		word := "fine"
		if i%97 == 5 {
			word = "poison"
			poison++
		}
		fmt.Fprintf(&body, `{"n":%d,"w":%q}`+"\n", i, word)
	}
	if status, answer := p.post("web", body.String()); status != 200 || !strings.Contains(answer, fmt.Sprintf(`"accepted":%d`, events)) {
		t.Fatalf("%d %s", status, answer)
	}
	for range rounds {
		until := node.seen() + 5 + rand.IntN(60)
		p.until("the node has been asked a few times more", func() bool { return node.seen() >= until || spoolIsEmpty(p) })
		p.kill()
		p = startGateway(t, data, settings...)
	}
	p.until("all is delivered", func() bool { return spoolIsEmpty(p) })
	letters := map[string]int{}
	out, _ := p.headgate(0, "deadletter", "list", "web", "-o", "json")
	for line := range strings.Lines(out) {
		var l struct{ Data string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		letters[l.Data]++
	}
	node.mu.Lock()
	defer node.mu.Unlock()
	lost, again, buried, wrong := 0, 0, 0, 0
	for line := range strings.Lines(body.String()) {
		line = strings.TrimSpace(line)
		taken, aside := node.lines[line], letters[line]
		switch {
		case strings.Contains(line, "poison") && aside == 0, strings.Contains(line, "fine") && taken == 0:
			lost++
		case strings.Contains(line, "fine") && aside > 0:
			wrong++
		case taken > 1:
			again++
		case aside > 1:
			buried++
		}
	}
	t.Logf("%d posts, %d of them repeated; lost %d, twice under different keys %d, set aside twice %d, set aside wrongly %d", node.posts, node.twice, lost, again, buried, wrong)
	if lost+again+buried+wrong > 0 || len(letters) != poison {
		t.Errorf("%d letters of %d; log:\n%s", len(letters), poison, p.log)
	}
}

// spoolIsEmpty reports whether all events of web are delivered or set aside.
func spoolIsEmpty(p *process) bool {
	_, text := p.ask("GET", p.admin+"/metrics", "", "")
	return strings.Contains(text, `headgate_spool_events{stream="web"} 0`) && strings.Contains(text, `headgate_lane_events{state="inflight",stream="web"} 0`)
}
