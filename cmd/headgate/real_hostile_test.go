package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// hostile is an attack as TestWriteHostileModules of package plugins leaves it.
type hostile struct {
	ID, Name, Stage, Code string

	file string
}

// TestF61F62F63F64F65F66F67HostileModules runs hostile modules against a gateway that serves a stream with a plugin that
// behaves, and prints what each attack cost. On demand, since it measures time: HEADGATE_HOSTILE is the folder of the modules.
func TestF61F62F63F64F65F66F67HostileModules(t *testing.T) {
	all := attacksIn(t, os.Getenv("HEADGATE_HOSTILE"))
	p := startGateway(t, t.TempDir())
	p.headgate(0, "plugin", "push", "accesslog", "../../examples/plugins/accesslog-c/accesslog.wasm")
	p.headgate(0, "plugin", "activate", "--stream", "web", "accesslog", "--config", `{"drop_status_from":500}`)
	quiet, bare := &pacer{base: p.http, events: 100}, &pacer{base: bareServer(t), events: 100}
	beside(2*time.Second, quiet, bare)
	quiet.reset()
	bare.reset()
	beside(10*time.Second, quiet, bare)
	alone, bareAlone := quiet.reset(), bare.reset()

	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !over.Load() {
			beside(time.Second, quiet, bare)
		}
	}()
	t.Logf("%-4s %-32s %-9s %-14s %9s %12s", "", "attack", "stopped", "as", "time", "memory")
	for _, a := range all {
		p.resetPeak()
		before := p.peak()
		began := time.Now()
		got := p.suffer(a)
		took := time.Since(began).Round(100 * time.Microsecond)
		t.Logf("%-4s %-32s %-9s %-14s %9v %+8d KiB", a.ID, a.Name, "at "+a.Stage, got, took, p.peak()-before)
		if got != a.Code && (a.Code != "FUEL" || got != "DEADLINE") { // on a busy machine it is the clock that comes first
			t.Errorf("%s %s: %s, want %s", a.ID, a.Name, got, a.Code)
		}
	}
	over.Store(true)
	<-ended
	during, bareDuring := quiet.reset(), bare.reset()
	t.Logf("the stream beside, before: %v", alone)
	t.Logf("the stream beside, during: %v", during)
	t.Logf("a bare server beside, before: %v", bareAlone)
	t.Logf("a bare server beside, during: %v", bareDuring)
	figure(t, during.over(alone) <= unchanged, "p99 of the stream beside changes by a factor of %.2f, that of the bare server by %.2f (target %.1f)", during.over(alone), bareDuring.over(bareAlone), unchanged)
	p.pauses()
	if len(during.statuses) != 1 || during.statuses[200] == 0 {
		t.Errorf("answers to the stream beside by status: %v", during.statuses)
	}
}

// TestF61PausesWhileGuestsCompute measures what guests that compute all the time do to a stream beside, and to a server in another
// process which does nothing but answer: that is the machine's part of it, and the client's. Each is measured
// alone and beside them in turns. On demand, like the test above.
func TestF61PausesWhileGuestsCompute(t *testing.T) {
	all := attacksIn(t, os.Getenv("HEADGATE_HOSTILE"))
	at := slices.IndexFunc(all, func(a hostile) bool { return a.ID == "F61" && a.Stage == "event" })
	if at < 0 {
		t.Fatal("no attack that computes")
	}
	wasm, err := os.ReadFile(all[at].file)
	if err != nil {
		t.Fatal(err)
	}
	const part, parts = 2 * time.Second, 3
	p := startGateway(t, t.TempDir(), "--set", "plugins.deadline="+part.String()) // so that one call takes as long as a part
	p.headgate(0, "plugin", "push", "accesslog", "../../examples/plugins/accesslog-c/accesslog.wasm")
	p.headgate(0, "plugin", "activate", "--stream", "web", "accesslog", "--config", `{"drop_status_from":500}`)
	p.steer("PUT", "/v1/plugins/hostile", wasm)
	const most = 4
	for i := range most {
		if status, answer := p.steer("POST", fmt.Sprintf("/v1/streams/evil%d/plugins", i), []byte(`{"plugin":"hostile","on_error":"pass"}`)); status != 200 {
			t.Fatalf("%d %s", status, answer)
		}
	}
	quiet, bare := &pacer{base: p.http, events: 100}, &pacer{base: bareServer(t), events: 100}
	beside(2*time.Second, quiet, bare)
	for guests := 1; guests <= most; guests *= 2 {
		var alone, during, bareAlone, bareDuring pace
		for range parts {
			quiet.reset()
			bare.reset()
			beside(part, quiet, bare)
			alone, bareAlone = alone.and(quiet.reset()), bareAlone.and(bare.reset())
			var computing sync.WaitGroup
			for i := range guests {
				computing.Go(func() {
					if _, answer := p.lines(fmt.Sprint("evil", i), "!\n"); !strings.Contains(answer, `"accepted":1`) {
						t.Errorf("a guest did not compute to its deadline: %s", answer)
					}
				})
			}
			beside(part, quiet, bare)
			during, bareDuring = during.and(quiet.reset()), bareDuring.and(bare.reset())
			computing.Wait()
		}
		figure(t, during.over(alone) <= unchanged, "beside %d guests that compute, p99 of the stream changes by a factor of %.2f, that of a bare server by %.2f (target %.1f)", guests, during.over(alone), bareDuring.over(bareAlone), unchanged)
		t.Logf("  the stream, alone and beside them: %v; %v", alone, during)
		t.Logf("  the bare server:                   %v; %v", bareAlone, bareDuring)
	}
	p.pauses()
}

// unchanged is by how much a p99 of some thousand answers differs from one measurement to the next; longPause is in seconds.
const (
	unchanged = 1.2
	longPause = 0.001
)

// figure prints what was measured beside its target, which it must have with CHECK=1.
func figure(t *testing.T, met bool, format string, args ...any) {
	t.Helper()
	if text := fmt.Sprintf(format, args...); met {
		t.Log("met  " + text)
	} else if t.Log("MISS " + text); os.Getenv("CHECK") != "" {
		t.Fail()
	}
}

// pauses prints what the runtime says of its latest pauses for garbage: the median and the longest.
func (p *process) pauses() {
	p.t.Helper()
	_, metrics := p.ask("GET", p.admin+"/metrics", "", "")
	at := func(quantile string) float64 {
		m := regexp.MustCompile(`go_gc_duration_seconds\{quantile="` + quantile + `"\} (\S+)`).FindStringSubmatch(metrics)
		if m == nil {
			p.t.Fatal("the metrics tell no pauses for garbage")
		}
		seconds, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			p.t.Fatal(err)
		}
		return seconds
	}
	figure(p.t, at("1") < longPause, "pauses for garbage: %.2f ms (median), %.2f ms (longest; target %v ms)", at("0.5")*1e3, at("1")*1e3, longPause*1e3)
}

func attacksIn(t *testing.T, dir string) (all []hostile) {
	t.Helper()
	if dir == "" {
		t.Skip("measures time: run make test-hostile")
	}
	list, err := os.ReadFile(filepath.Join(dir, "attacks.json"))
	if err == nil {
		err = json.Unmarshal(list, &all)
	}
	if err != nil || len(all) == 0 {
		t.Fatalf("%d attacks: %v", len(all), err)
	}
	for i := range all {
		all[i].file = filepath.Join(dir, strconv.Itoa(i)+".wasm")
	}
	return all
}

// kinds of failure, and codes of checks.
var hostileKind = regexp.MustCompile(`failed on this event: ([A-Z_]+)`)
var hostileCode = regexp.MustCompile(`"code":"(E_[A-Z_]+)"`)

// suffer runs an attack as far as it comes and returns what stopped it.
func (p *process) suffer(a hostile) string {
	p.t.Helper()
	wasm, err := os.ReadFile(a.file)
	if err != nil {
		p.t.Fatal(err)
	}
	status, answer := p.steer("PUT", "/v1/plugins/hostile", wasm)
	if codes := hostileCode.FindAllStringSubmatch(answer, -1); status == 422 && len(codes) > 0 {
		for _, c := range codes {
			if c[1] == a.Code {
				return c[1]
			}
		}
		return codes[0][1]
	}
	if status >= 300 {
		return fmt.Sprint(status)
	}
	status, answer = p.steer("POST", "/v1/streams/evil/plugins", []byte(`{"plugin":"hostile","on_error":"reject"}`))
	if status >= 300 {
		if strings.Contains(answer, a.Code) {
			return a.Code
		}
		return answer
	}
	// What it does to an event is the event's own loss: those around it have their keys.
	status, answer = p.lines("evil", "ka\n!\nkb\n")
	var sum struct{ Accepted, Rejected int }
	if err := json.Unmarshal([]byte(answer), &sum); err != nil || sum.Accepted != 2 || sum.Rejected != 1 {
		return fmt.Sprintf("%d %s", status, answer)
	}
	if kind := hostileKind.FindStringSubmatch(answer); kind != nil {
		return kind[1]
	}
	return answer
}

// lines sends events that are no JSON.
func (p *process) lines(stream, body string) (int, string) {
	p.t.Helper()
	return p.ask("POST", p.http+"/v1/streams/"+stream+"/events", "text/plain", body)
}

// steer calls the admin API.
func (p *process) steer(method, path string, body []byte) (int, string) {
	p.t.Helper()
	mediaType := map[string]string{"POST": "application/json", "PUT": "application/wasm"}[method]
	return p.ask(method, p.admin+path, mediaType, string(body))
}

// resetPeak makes peak start anew from what is resident now.
func (p *process) resetPeak() {
	os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0) // without it the peak is since the start
}

// peak is the most memory that was resident, in KiB.
func (p *process) peak() int {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Skip("no /proc: ", err)
	}
	_, line, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(line)[0])
	if err != nil {
		p.t.Fatal(err)
	}
	return kib
}
