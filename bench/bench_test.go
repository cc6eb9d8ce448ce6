package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"math"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"
)

func TestLinesAreAnAccessLog(t *testing.T) {
	lines := makeLines()
	bytesOf, failures := 0, 0
	clients := map[string]int{}
	for i, l := range lines {
		bytesOf += len(l.text) + 1
		var e struct {
			Time       string `json:"time"`
			RemoteIP   string `json:"remote_ip"`
			RemoteUser string `json:"remote_user"`
			Request    string `json:"request"`
			Response   int    `json:"response"`
			Bytes      int    `json:"bytes"`
			Referrer   string `json:"referrer"`
			Agent      string `json:"agent"`
		}
		d := json.NewDecoder(bytes.NewReader(l.text))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil {
			t.Fatalf("line %d: %v: %s", i, err, l.text)
		}
		if e.Agent == "" || e.Referrer == "" || e.RemoteUser == "" || e.Time == "" || e.Request == "" {
			t.Fatalf("line %d lacks a field: %s", i, l.text)
		}
		if l.failed != (e.Response >= 500 && e.Response <= 599) {
			t.Fatalf("line %d: failed is %v, response %d", i, l.failed, e.Response)
		}
		if string(key(l.text)) != e.RemoteIP || failed(l.text) != l.failed {
			t.Fatalf("line %d: the floor finds key %q, failed %v: %s", i, key(l.text), failed(l.text), l.text)
		}
		if l.failed {
			failures++
		}
		clients[e.RemoteIP]++
	}
	n := float64(len(lines))
	busiest := 0
	for _, c := range clients {
		busiest = max(busiest, c)
	}
	near(t, "mean length", float64(bytesOf)/n, 256, 1)
	near(t, "share of failures", float64(failures)/n, 0.10, 0.003)
	near(t, "share of the busiest client", float64(busiest)/n, 0.139, 0.003)
	if len(lines) != 200_000 {
		t.Errorf("%d lines", len(lines))
	}
	if !slices.EqualFunc(lines[:1000], makeLines()[:1000], func(a, b line) bool { return bytes.Equal(a.text, b.text) }) {
		t.Error("the lines differ from call to call")
	}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s: %.4f, want %.4f", what, got, want)
	}
}

func TestAddressesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for client := range uint64(addresses) {
		seen[string(appendAddress(nil, client))] = true
	}
	if len(seen) != addresses {
		t.Errorf("%d clients share %d addresses", addresses, len(seen))
	}
}

func TestFloorKeepsWhatItMust(t *testing.T) {
	lines := makeLines()
	text := body(lines, 0, 2000)
	var all, some floorPart
	all.add(text, false)
	some.add(text, true)
	if !bytes.Equal(all.raw, text) || all.events != 2000 {
		t.Errorf("without a filter %d events and %d bytes of %d are kept", all.events, len(all.raw), len(text))
	}
	var want []byte
	for _, l := range lines[:2000] {
		if !l.failed {
			want = append(append(want, l.text...), '\n')
		}
	}
	if !bytes.Equal(some.raw, want) || some.events != kept(lines, 2000) {
		t.Errorf("the filter keeps %d events, want %d", some.events, kept(lines, 2000))
	}
}

// listen serves in memory; the load generator and others then reach handle at any address.
func listen(t *testing.T, handle fasthttp.RequestHandler) *fasthttp.HostClient {
	t.Helper()
	ln := fasthttputil.NewInmemoryListener()
	done := make(chan error)
	go func() { done <- fasthttp.Serve(ln, handle) }()
	t.Cleanup(func() {
		ln.Close()
		<-done
	})
	return &fasthttp.HostClient{Addr: "sink", Dial: func(string) (net.Conn, error) { return ln.Dial() }}
}

func TestSinkNoticesAWrongCount(t *testing.T) {
	s, err := newSink()
	if err != nil {
		t.Fatal(err)
	}
	c := listen(t, s.handle)
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	frame := encoder.EncodeAll([]byte("1\n2\n3\n"), []byte("\x5d\x2a\x4d\x18\x03\x00\x00\x00abc")) // behind a skippable one
	do := func(method, uri, count string) counts {
		t.Helper()
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		req.SetRequestURI("http://sink" + uri)
		req.Header.SetMethod(method)
		if method == fasthttp.MethodPost {
			req.Header.SetContentType("application/x-ndjson")
			req.Header.SetContentEncoding("zstd")
			req.Header.Set(countField, count)
			req.SetBody(frame)
		}
		if err := c.Do(req, resp); err != nil || resp.StatusCode() != 200 {
			t.Fatal(resp.StatusCode(), err)
		}
		var seen counts
		if method == fasthttp.MethodGet {
			if err := json.Unmarshal(resp.Body(), &seen); err != nil {
				t.Fatal(err)
			}
		}
		return seen
	}
	do("PUT", "/?check=true", "")
	do("POST", "/", "3")
	if seen := do("GET", "/", ""); seen.Events != 3 || seen.Lines != 3 || seen.Trouble != "" {
		t.Errorf("three events in a good request: %+v", seen)
	}
	do("POST", "/", "4")
	if seen := do("GET", "/", ""); seen.Events != 7 || seen.Lines != 6 || seen.Trouble == "" {
		t.Errorf("a request that lies: %+v", seen)
	}
	do("PUT", "/?check=false", "")
	do("POST", "/", "4")
	if seen := do("GET", "/", ""); seen.Events != 4 || seen.Lines != 0 || seen.Trouble != "" {
		t.Errorf("without checking: %+v", seen)
	}
}

func TestLoadSendsEachRequestOnceAndRetries(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var requests, taken, lines int
	handle := func(c *fasthttp.RequestCtx) {
		if requests++; requests%3 == 1 { // one connection: no lock is needed
			c.SetStatusCode(503)
			c.SetConnectionClose()
			return
		}
		taken++
		lines += bytes.Count(c.PostBody(), []byte{'\n'})
		c.SetStatusCode(202)
		c.SetBodyString("an answer that must be read past")
	}
	done := make(chan error)
	go func() { done <- fasthttp.Serve(ln, handle) }()
	l := &load{address: ln.Addr().String(), requests: prebuilt(&url.URL{Host: "x", Path: "/"}, 500), total: 450}
	report, err := l.run(context.Background(), 1)
	ln.Close()
	<-done
	if err != nil {
		t.Fatal(err)
	}
	if taken != 450 || lines != 450*500 || report.Retries != requests-450 || report.Retries == 0 {
		t.Errorf("%d requests, %d taken, %d lines, report %+v", requests, taken, lines, report)
	}
}

func TestAnswersThatAreNoAnswers(t *testing.T) {
	whole := "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nContent-Length: 2\r\n\r\nno"
	status, last, err := readAnswer(bufio.NewReader(strings.NewReader(whole)))
	if status != 503 || !last || err != nil {
		t.Errorf("%d %v %v", status, last, err)
	}
	for n := range len(whole) {
		if _, _, err := readAnswer(bufio.NewReader(strings.NewReader(whole[:n]))); err == nil {
			t.Errorf("cut to %d bytes, it is still an answer", n)
		}
	}
}

func TestReportComparesRoundByRound(t *testing.T) {
	one := func(cpu, rate float64) sample { return sample{CPU: cpu, EventsPerSecond: rate} }
	r := newReport("machine", map[string][]sample{
		"floor":       {one(1, 100), one(2, 50), one(1, 100)},
		"builtin":     {one(1.5, 1), one(2.8, 1), one(1.4, 1)},
		"single_bare": {one(10, 1000)},
		"single":      {one(20, 600)},
	})
	if r.Floor.CPU != 1 || r.Builtin.CPU != 1.5 || r.Builtin.Ratio != 1.4 || r.Single.RateRatio != 0.6 || r.CPlugin != nil {
		t.Errorf("%s", r.table())
	}
	if err := r.misses(); err == nil || !strings.HasPrefix(err.Error(), "single:") {
		t.Errorf("only single misses its target: %v", err)
	}
	r.Builtin.Ratio, r.Single.RateRatio = 1.41, 0.7
	if err := r.misses(); err == nil || !strings.HasPrefix(err.Error(), "builtin:") {
		t.Errorf("only builtin misses its target: %v", err)
	}
	doc, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var names map[string]json.RawMessage
	if err := json.Unmarshal(doc, &names); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"machine", "floor", "floor_filter", "builtin", "c_plugin", "go_plugin", "single"} {
		if names[name] == nil {
			t.Errorf("%s is missing in %s", name, doc)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{3, 1}, 2}, {[]float64{9, 1, 2}, 2}} {
		if got := median(c.values); got != c.want {
			t.Errorf("%v: %v", c.values, got)
		}
	}
}

func TestCPUTimeOfAProcess(t *testing.T) {
	got, err := parseCPU("42 (a ) name) S 1 42 42 0 -1 4194560 1 2 3 4 150 25 0 0 20 0 8 0 1 2 3")
	if got != 1.75 || err != nil {
		t.Errorf("%v %v", got, err)
	}
	if _, err := parseCPU("42 (cut) S 1 42"); err == nil {
		t.Error("too few fields are enough")
	}
}

func TestResultsNameNoHost(t *testing.T) {
	if got := fileName("AMD EPYC 7B13 (x), 2 cores, linux/amd64, go1.26.8"); strings.ContainsAny(got, "/. ,()") {
		t.Errorf("%q is no good file name", got)
	}
}
