package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// fake is a gateway in memory that implements all of Deps.
type fake struct {
	mu        sync.Mutex
	health    []Dependency
	streams   map[string]Definition
	chains    map[string][]Activation
	plugins   map[string]Plugin
	verdict   []Check       // of the next upload
	signature string        // of the last upload
	inside    chan struct{} // not nil: Upload announces itself there and waits for release
	release   chan struct{}
	rows      func(ctx context.Context, q Query, visit func([]Row) error) error // ReadRows
	runs      func(ctx context.Context, q Query, visit func(StoredRun) error) error
	err       error      // what Streams returns
	order     PurgeOrder // the last one
	asked     LogQuery   // the last one
	change    Change     // likewise
	tried     TrialOrder // the last one
}

func newFake() *fake {
	return &fake{
		streams: map[string]Definition{
			"web":   {Name: "web", Revision: 7, Managed: "api", Document: json.RawMessage(`{"codec":"zstd"}`)},
			"fixed": {Name: "fixed", Revision: 1, Managed: "file", Document: json.RawMessage(`{}`)},
		},
		chains: map[string][]Activation{},
		plugins: map[string]Plugin{"accesslog": {Name: "accesslog", Streams: []string{"web"}, Versions: []Version{
			{Name: "accesslog", Digest: "sha256:bbbbbbbb22222222", Size: 2},
			{Name: "accesslog", Digest: "sha256:aaaaaaaa11111111", Size: 1},
		}}},
	}
}

func (f *fake) Dependencies() []Dependency { return f.health }

func (f *fake) Streams(context.Context) (all []Definition, err error) {
	for _, d := range f.streams {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	return all, f.err
}

func (f *fake) Stream(_ context.Context, name string) (Definition, error) {
	d, ok := f.streams[name]
	if !ok {
		return d, event.Problemf(event.UnknownStream, "no stream %q", name)
	}
	return d, nil
}

func (f *fake) SetStream(_ context.Context, name string, doc json.RawMessage, when Match) (Definition, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, ok := f.streams[name]
	if d.Managed == "file" {
		return d, false, event.Problemf(event.ManagedByFile, "the file has it")
	}
	if err := when.Check(d.Revision); err != nil {
		return d, false, err
	}
	d = Definition{Name: name, Revision: d.Revision + 1, Managed: "api", Document: doc}
	f.streams[name] = d
	return d, !ok, nil
}

func (f *fake) DeleteStream(ctx context.Context, name string, when Match) error {
	d, err := f.Stream(ctx, name)
	if err != nil {
		return err
	}
	if err := when.Check(d.Revision); err != nil {
		return err
	}
	delete(f.streams, name)
	return nil
}

func (f *fake) Purge(ctx context.Context, stream string, order PurgeOrder) (uint64, error) {
	_, err := f.Stream(ctx, stream)
	f.order = order
	return 3, err
}

func (f *fake) Resume(stream string) (int, error) {
	_, err := f.Stream(context.Background(), stream)
	return 2, err
}

func (f *fake) Table(ctx context.Context, name string) (json.RawMessage, error) {
	_, err := f.Stream(ctx, name)
	return json.RawMessage(`{"version":3,"partitions":[]}`), err
}

func (f *fake) HotKeys(ctx context.Context, name string) (json.RawMessage, error) {
	_, err := f.Stream(ctx, name)
	return json.RawMessage(`{"keys":[]}`), err
}

func (f *fake) Watch(ctx context.Context, stream string, follow bool, tell func(Notice) error) error {
	if _, err := f.Stream(ctx, stream); err != nil {
		return err
	}
	err := tell(Notice{Name: "split", Data: json.RawMessage(`{"n":1}`)})
	if follow && err == nil {
		<-ctx.Done()
	}
	return err
}

func (f *fake) Explain(ctx context.Context, name string, key, source []byte, _ string) (json.RawMessage, error) {
	_, err := f.Stream(ctx, name)
	if key == nil {
		return json.RawMessage(`{"key":null}`), err
	}
	return json.RawMessage(fmt.Sprintf(`{"key":%q,"source":%q}`, key, source)), err
}

func (f *fake) Chain(_ context.Context, stream string) ([]Activation, error) {
	return f.chains[stream], nil
}

func (f *fake) Activate(_ context.Context, stream string, a Activation) ([]Activation, error) {
	f.chains[stream] = append(f.chains[stream], a)
	return f.chains[stream], nil
}

func (f *fake) Change(_ context.Context, stream string, c Change) ([]Activation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.change = c
	switch c.Do {
	case ResetChain:
		delete(f.chains, stream)
	case Deactivate:
		i := slices.IndexFunc(f.chains[stream], func(a Activation) bool { return a.Plugin == c.Plugin })
		if i < 0 {
			return nil, event.Problemf(event.UnknownPlugin, "%s is not active in %s", c.Plugin, stream)
		}
		f.chains[stream] = slices.Delete(f.chains[stream], i, i+1)
	}
	return f.chains[stream], nil
}

func (f *fake) Plugins(context.Context) (all []Plugin, err error) {
	for _, p := range f.plugins {
		all = append(all, p)
	}
	return all, nil
}

func (f *fake) Plugin(_ context.Context, name string) (Plugin, error) {
	p, ok := f.plugins[name]
	if !ok {
		return p, event.Problemf(event.UnknownPlugin, "no plugin %q", name)
	}
	return p, nil
}

func (f *fake) Upload(_ context.Context, name string, wasm, signature []byte) (Version, bool, error) {
	if f.inside != nil {
		f.inside <- struct{}{}
		<-f.release
	}
	if string(wasm) == "panic" {
		panic("at the upload")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	v := Version{Name: name, Digest: "sha256:cccccccc33333333", Size: int64(len(wasm)), Checks: f.verdict}
	f.signature = string(signature)
	p, ok := f.plugins[name]
	if passed(v) == nil && !ok {
		f.plugins[name] = Plugin{Name: name, Versions: append(p.Versions, v)}
	}
	return v, !ok, nil
}

func (f *fake) PluginLogs(ctx context.Context, q LogQuery, visit func([]LogLine) error) error {
	if q.Plugin == "nope" {
		return event.Problemf(event.UnknownPlugin, "no plugin nope")
	}
	f.mu.Lock()
	f.asked = q
	f.mu.Unlock()
	line := LogLine{Number: 1, Time: time.Unix(0, 0).UTC(), Plugin: q.Plugin, Version: "sha256:aaaa", Level: "warn", From: "guest", Message: "one\ntwo"}
	if err := visit([]LogLine{line}); err != nil || !q.Follow {
		return err
	}
	<-ctx.Done()
	return nil
}

func (f *fake) TryPlugin(_ context.Context, o TrialOrder) (TrialResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tried = o
	return TrialResult{Plugin: o.Plugin, Digest: o.Digest, Kept: len(o.Events), Events: []json.RawMessage{json.RawMessage(`{"verdict":"kept"}`)}}, nil
}

func (f *fake) DeletePlugin(_ context.Context, name, digest string) error {
	p, ok := f.plugins[name]
	if !ok {
		return event.Problemf(event.UnknownPlugin, "no plugin %q", name)
	}
	if len(p.Streams) > 0 && digest != "sha256:aaaaaaaa11111111" {
		return event.Problemf(event.PluginInUse, "active in %v", p.Streams)
	}
	delete(f.plugins, name)
	return nil
}

func (f *fake) ReadRows(ctx context.Context, q Query, visit func([]Row) error) error {
	return f.rows(ctx, q, visit)
}

func (f *fake) ReadRuns(ctx context.Context, q Query, visit func(StoredRun) error) error {
	return f.runs(ctx, q, visit)
}

// bench is a running server with its gateway.
type bench struct {
	*fake
	letters letterFake
	t       *testing.T
	server  *Server
	base    string
	http    *http.Client
	done    chan error // result of Run
}

func start(t *testing.T, change ...func(*Config)) *bench {
	t.Helper()
	return startAs(t, nil, change...)
}

// startAs is start where calls need permission.
func startAs(t *testing.T, auth Auth, change ...func(*Config)) *bench {
	t.Helper()
	b := &bench{fake: newFake(), t: t, done: make(chan error, 1)}
	cfg := Config{Listen: "127.0.0.1:0", Hosts: []string{"gate.example"}, Build: Build{Version: "1.2.3", Go: "go1.26"}}
	for _, c := range change {
		c(&cfg)
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "headgate_test_total", Help: "Test."}))
	s, err := New(cfg, Deps{Health: b.fake, Streams: b.fake, Routing: b.fake, Chains: b.fake, Plugins: b.fake, Logs: b.fake, Trials: b.fake, Events: b.fake, Purger: b.fake, Watcher: b.fake, Letters: &b.letters, Metrics: reg, Auth: auth})
	if err != nil {
		t.Fatal(err)
	}
	addr, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	b.server, b.base = s, "http://"+addr.String()
	transport := &http.Transport{}
	b.http = &http.Client{Transport: transport}
	go func() { b.done <- s.Run(context.Background()) }()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-b.done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return b
}

// got is what a request brought.
type got struct {
	status int
	header http.Header
	body   string
}

// ask sends a request; headers are name, value pairs.
func (b *bench) ask(method, path, body string, headers ...string) got {
	b.t.Helper()
	req, err := http.NewRequest(method, b.base+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		} else {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := b.http.Do(req)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	return got{resp.StatusCode, resp.Header, string(text)}
}

// expect checks status and that the body contains each of parts.
func (g got) expect(t *testing.T, status int, parts ...string) got {
	t.Helper()
	if g.status != status {
		t.Errorf("status %d, want %d: %s", g.status, status, g.body)
	}
	for _, p := range parts {
		if !strings.Contains(g.body, p) {
			t.Errorf("no %s in %s", p, g.body)
		}
	}
	if status >= 400 && g.header.Get("Content-Type") != "application/problem+json" && !strings.Contains(g.body, `"ready"`) {
		t.Errorf("Content-Type %s of %d", g.header.Get("Content-Type"), status)
	}
	return g
}
