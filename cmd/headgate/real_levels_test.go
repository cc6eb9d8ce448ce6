package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
)

// TestA02LevelsAndTroubles has each level meet each trouble of a backend, and a spool that is full: a level is never weakened in
// silence, what is safe is said to be, and what was acknowledged arrives.
func TestA02LevelsAndTroubles(t *testing.T) {
	const accepted, durable = `"ack":"accepted"`, `"ack":"durable"`
	for name, c := range map[string]struct {
		answer forwardtest.Answer
		stop   bool
		slow   bool
		want   [3]string // of accepted, durable, delivered: status and parts of the answer
	}{
		"works": {want: [3]string{"202 " + accepted, "200 " + durable, `200 "ack":"delivered"`}},
		"down":  {stop: true, want: [3]string{"202 " + accepted, "200 " + durable, `503 "ack_timeout" "stored":"durable" "retryable":false`}},
		"slow":  {slow: true, want: [3]string{"202 " + accepted, "200 " + durable, `503 "ack_timeout" "stored":"durable" "retryable":false`}},
		"full":  {answer: forwardtest.Answer{Status: 507}, want: [3]string{"202 " + accepted, "200 " + durable, `503 "ack_timeout" "stored":"durable" "retryable":false`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := forwardtest.NewReceiver(t)
			if c.slow {
				held := make(chan struct{})
				t.Cleanup(func() { close(held) })
				c.answer.After = held
			}
			n.Judge(func(*forward.Run) forwardtest.Answer { return c.answer })
			if c.stop {
				n.Stop()
			}
			p := startGateway(t, t.TempDir(), "--set", "http.request_timeout=1500ms", "--set", fmt.Sprintf("backends={lake: {webhook: {nodes: [%q], timeout: 30s}}}", n.URL),
				"--set", "streams={s: {backend: lake, partitions: 1, codec: none}, only: {backend: lake, partitions: 1, ack: {default: durable, min: durable, max: durable}}}")
			sent := 0
			for i, level := range []string{"accepted", "durable", "delivered"} {
				began := time.Now()
				var resp *http.Response
				p.until("it is answered in time", func() (ok bool) { // on a busy disk an event is not safe soon enough each time
					var err error
					if resp, err = http.Post(p.http+"/v1/streams/s/events?ack="+level, "application/x-ndjson", strings.NewReader(fmt.Sprintf(`{"n":%d}`, i))); err != nil {
						t.Fatal(err)
					}
					sent++
					return !unknown(t, resp)
				})
				wantAnswer(t, level, resp, c.want[i])
				if resp.StatusCode == 503 && resp.Header.Get("Retry-After") != "" {
					t.Errorf("%s: it is safe and must not be sent again, and there is a Retry-After", level)
				}
				t.Logf("%s: %d after %v", level, resp.StatusCode, time.Since(began).Round(time.Millisecond))
			}
			for _, level := range []string{"accepted", "delivered"} {
				if status, doc := p.post("only", `{}`, "ack="+level); status != 400 || !strings.Contains(doc, `"bad_parameter"`) {
					t.Errorf("%s where durable alone may be had: %d %s", level, status, doc)
				}
			}
			if c.slow {
				return
			}
			if c.stop {
				n.Start()
			}
			n.Judge(nil)
			p.until("everything is on the node", func() bool {
				return strings.Count(strings.Join(forwardtest.Events(t, n.Runs()...), "\n"), `"n":`) == sent
			})
		})
	}
}

// unknown tells whether a request ended before anybody knew what became of its event. The body can be read again.
func unknown(t *testing.T, resp *http.Response) bool {
	t.Helper()
	doc, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(doc))
	return bytes.Contains(doc, []byte(`"ack_timeout"`)) && bytes.Contains(doc, []byte(`"stored":"unknown"`))
}

// wantAnswer checks a status and parts of a body.
func wantAnswer(t *testing.T, what string, resp *http.Response, want string) {
	t.Helper()
	defer resp.Body.Close()
	var doc strings.Builder
	if err := resp.Write(&doc); err != nil {
		t.Fatal(err)
	}
	status, parts, _ := strings.Cut(want, " ")
	for part := range strings.FieldsSeq(parts) {
		if fmt.Sprint(resp.StatusCode) != status || !strings.Contains(doc.String(), part) {
			t.Errorf("%s: %s, want %s", what, doc.String(), want)
		}
	}
}

// TestIsolation prints what one dead backend does to the throughput of another stream: HEADGATE_ISOLATION=1 has it run.
func TestIsolation(t *testing.T) {
	if os.Getenv("HEADGATE_ISOLATION") == "" {
		t.Skip("HEADGATE_ISOLATION is not set")
	}
	n := forwardtest.NewReceiver(t)
	p := startGateway(t, t.TempDir(), "--set", fmt.Sprintf("backends={lake: {webhook: {nodes: [%q], timeout: 1s}}}", n.URL),
		"--set", "streams={dead: {backend: lake, partitions: 4}, alive: {partitions: 4}}", "--set", "spool.max_bytes=256MiB")
	body := strings.Repeat(`{"k":"some key","text":"`+strings.Repeat("x", 200)+`"}`+"\n", 200)
	// Both streams get the same load all the time; what counts is how much of it the one that is well takes.
	measure := func(d time.Duration) (rate float64) {
		end, done, all := time.Now().Add(d), 0, make(chan int, 8)
		for i := range cap(all) {
			go func() {
				n, stream := 0, []string{"alive", "dead"}[i%2]
				for time.Now().Before(end) {
					resp, err := http.Post(p.http+"/v1/streams/"+stream+"/events", "application/x-ndjson", strings.NewReader(body))
					if err != nil {
						break
					}
					resp.Body.Close()
					if stream == "dead" {
						<-time.After(20 * time.Millisecond) // the same offered load, taken or not
					} else if resp.StatusCode == 200 {
						n++
					}
				}
				all <- n
			}()
		}
		for range cap(all) {
			done += <-all
		}
		return float64(done) / d.Seconds()
	}
	measure(2 * time.Second)
	var before, during float64
	for range 3 { // alternated, so that what else the machine does meets both
		before += measure(4 * time.Second)
		n.Stop()
		during += measure(4 * time.Second)
		n.Start()
		measure(time.Second)
	}
	t.Logf("the healthy stream takes %.0f requests/s with the other backend up, %.0f with it down: ratio %.3f", before/3, during/3, during/before)
	if during < 0.9*before {
		t.Errorf("ratio %.3f, want 0.9 at least", during/before)
	}
}
