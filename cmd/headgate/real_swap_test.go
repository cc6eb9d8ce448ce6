package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestL12SwapUnderLoad: while events come, versions are activated, tried as canaries and shadows, promoted and gone back
// from. No request fails, and each event is stored once, processed by exactly one version: each takes one v from its front.
// HEADGATE_SWAP is how many seconds it takes at 100,000 events a second with a change a second; without it two seconds, a
// hundred events a request, and a change each 100 ms.
func TestL12SwapUnderLoad(t *testing.T) {
	l := swapLoad{requests: 200, events: 100, change: 100 * time.Millisecond}
	if seconds, err := strconv.Atoi(os.Getenv("HEADGATE_SWAP")); err == nil {
		l = swapLoad{requests: 100 * seconds, events: 1000, change: time.Second}
	}
	p := startGateway(t, t.TempDir())
	versions := []string{p.version("v", 0), p.version("v", 1), p.version("v", 2)}
	p.change("", fmt.Sprintf(`{"plugin":"v","digest":%q}`, versions[0]))
	l.least = 8
	over := make(chan struct{})
	go func() {
		defer close(over)
		l.run(p)
	}()
	changes := 0
	for tick := time.NewTicker(l.change); ; changes++ {
		select {
		case <-over:
			tick.Stop()
			l.check(t, p, versions, changes)
			return
		case <-tick.C:
		}
		l.changes.Store(int64(changes))
		next := versions[(changes/4+1)%len(versions)]
		switch changes % 4 {
		case 0:
			p.change("", fmt.Sprintf(`{"plugin":"v","digest":%q}`, next))
		case 1:
			p.change("", fmt.Sprintf(`{"plugin":"v","digest":%q,"stage":"canary","percent":50}`, versions[(changes/4+2)%len(versions)]))
		case 2:
			p.change("/promote", `{"plugin":"v"}`)
		case 3:
			p.change("/rollback", `{"plugin":"v"}`)
		}
	}
}

// version uploads the scripted guest once more, with another digest that it returns.
func (p *process) version(name string, number int) string {
	p.t.Helper()
	wasm, err := os.ReadFile("../../plugins/testdata/scripted.wasm")
	if err != nil {
		p.t.Fatal(err)
	}
	custom := append([]byte{4, 't', 'e', 's', 't'}, fmt.Sprint(number)...)
	status, answer := p.steer("PUT", "/v1/plugins/"+name, append(wasm, append([]byte{0, byte(len(custom))}, custom...)...))
	var v struct{ Digest string }
	if err := json.Unmarshal([]byte(answer), &v); err != nil || status != 201 {
		p.t.Fatalf("%d %s", status, answer)
	}
	return v.Digest
}

// change changes what plugins the stream web has.
func (p *process) change(path, body string) {
	p.t.Helper()
	if status, answer := p.steer("POST", "/v1/streams/web/plugins"+path, []byte(body)); status != 200 {
		p.t.Errorf("%s %s: %d %s", path, body, status, answer)
	}
}

// swapLoad sends requests, a hundred a second as long as the gateway keeps pace.
type swapLoad struct {
	requests, events int
	change           time.Duration
	least            int64 // changes; as long as there are fewer, it goes on behind its requests
	changes          atomic.Int64

	failed  atomic.Int64
	fault   atomic.Pointer[string] // the last one
	mu      sync.Mutex
	chains  map[string]int // requests by what processed them; guarded by mu
	seconds float64
}

func (l *swapLoad) run(p *process) {
	l.chains = map[string]int{}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	inFlight := make(chan struct{}, 64)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	var all sync.WaitGroup
	for q := 0; q < l.requests || l.changes.Load() < l.least; q++ {
		<-tick.C
		inFlight <- struct{}{}
		all.Go(func() { l.post(client, p, q); <-inFlight })
		l.requests = max(l.requests, q+1)
	}
	all.Wait()
	l.seconds = time.Since(began).Seconds()
}

func (l *swapLoad) post(client *http.Client, p *process, q int) {
	var body bytes.Buffer
	for i := range l.events {
		fmt.Fprintf(&body, "vv%d GET /api/v1/sessions HTTP/1.1 204 0.002 some more of what a line of a log has, to make it longer\n", q*l.events+i)
	}
	req, err := http.NewRequest("POST", p.http+"/v1/streams/web/events", &body)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "text/plain")
	req.Header.Set("Headgate-Source", fmt.Sprint("producer", q%50))
	var sum struct {
		Accepted int
		Chain    string
	}
	resp, err := client.Do(req)
	if err == nil {
		err = json.NewDecoder(resp.Body).Decode(&sum)
		resp.Body.Close()
		if err == nil && (resp.StatusCode != 200 || sum.Accepted != l.events) {
			err = fmt.Errorf("%d, %d accepted", resp.StatusCode, sum.Accepted)
		}
	}
	if err != nil {
		text := err.Error()
		l.failed.Add(1)
		l.fault.Store(&text)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.chains[sum.Chain]++
}

// check reads everything back.
func (l *swapLoad) check(t *testing.T, p *process, versions []string, changes int) {
	t.Helper()
	times := make([]uint8, l.requests*l.events)
	wrong := 0
	cmd := exec.Command(p.bin, "tail", "--stream", "web", "--from", "start", "--wait", "2s", "-o", "data")
	cmd.Env = append(os.Environ(), "HEADGATE_ADMIN_URL="+p.admin)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		rest, once := strings.CutPrefix(lines.Text(), "v")
		number, _, _ := strings.Cut(rest, " ")
		if n, err := strconv.Atoi(number); once && err == nil && n < len(times) {
			times[n]++
		} else {
			wrong++
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	lost, doubled := 0, 0
	for _, n := range times {
		if n == 0 {
			lost++
		} else if n > 1 {
			doubled++
		}
	}
	t.Logf("%d events in %.1f s (%.0f a second), %d changes: %d requests failed; %d events lost, %d doubled, %d processed by no version or by several; requests by version %v",
		len(times), l.seconds, float64(len(times))/l.seconds, changes, l.failed.Load(), lost, doubled, wrong, l.byVersion(versions))
	if l.failed.Load() > 0 {
		t.Errorf("%d requests failed: %s", l.failed.Load(), *l.fault.Load())
	}
	if lost+doubled+wrong > 0 || changes < 8 {
		t.Error("see above")
	}
}

// byVersion is how many requests each version processed; a chain that is none of them is counted last.
func (l *swapLoad) byVersion(versions []string) []int {
	counts := make([]int, len(versions)+1)
	for chain, n := range l.chains {
		at := len(versions)
		for i, v := range versions {
			if v == chain {
				at = i
			}
		}
		counts[at] += n
	}
	return counts
}

// TestL21AThousandVersions: uploads and replacements leave nothing behind in memory. On demand, since it takes minutes:
// HEADGATE_UPLOADS is how many.
func TestL21AThousandVersions(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("HEADGATE_UPLOADS"))
	if err != nil {
		t.Skip("takes minutes: run make test-swap")
	}
	p := startGateway(t, t.TempDir())
	began := time.Now()
	var first, before string
	early, last := 0, 0
	for i := range n {
		digest := p.version("v", i)
		p.change("", fmt.Sprintf(`{"plugin":"v","digest":%q}`, digest))
		if status, answer := p.lines("web", "v0\nkx\nt\n"); status != 207 || !strings.Contains(answer, digest) {
			t.Fatalf("%d %s", status, answer)
		}
		if first, before = before, digest; first != "" {
			if status, answer := p.steer("DELETE", "/v1/plugins/v/versions/"+first, nil); status != 204 {
				t.Fatalf("after %d: %d %s", i, status, answer)
			}
		}
		switch i {
		case n / 10:
			early = p.resident()
			t.Logf("after %d: %d KiB resident at rest", i, early)
		case n - 1:
			last = p.resident()
			t.Logf("after %d: %d KiB resident at rest, %+.1f %%, in %v", i, last, 100*(float64(last)/float64(early)-1), time.Since(began).Round(time.Second))
		}
	}
	if 10*last > 11*early {
		t.Error("it grew by more than a tenth")
	}
}

// resident is the memory that is resident at rest, in KiB: after two minutes the runtime has collected garbage even where
// nothing happens, and stores have dropped what they keep for those who come soon.
func (p *process) resident() (kib int) {
	p.t.Helper()
	<-time.After(130 * time.Second)
	for range 20 {
		p.resetPeak()
		<-time.After(100 * time.Millisecond)
		if now := p.peak(); kib == 0 || now < kib {
			kib = now
		}
	}
	return kib
}
