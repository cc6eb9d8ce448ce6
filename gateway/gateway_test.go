package gateway

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/internal/leaks"
	"github.com/headgate-io/headgate/internal/settings"
)

// running is a gateway in this process, on ports of its own.
type instance struct {
	*Gateway
	t    *testing.T
	stop context.CancelFunc
	done chan error
}

// ready is closed by the first write of the commands to try.
type ready chan struct{}

func (r ready) Write(p []byte) (int, error) { close(r); return len(p), nil }

func start(t *testing.T, cfg config.Config) *instance {
	t.Helper()
	return startWith(t, cfg, nil)
}

// startWith is start with a command that compiles modules.
func startWith(t *testing.T, cfg config.Config, compiler []string) *instance {
	t.Helper()
	cfg.HTTP.Listen, cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	for name, s := range cfg.Streams {
		cfg.Streams[name] = s.WithDefaults()
	}
	up := make(ready)
	g, err := New(cfg, Deps{Out: up, Compiler: compiler})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	in := &instance{Gateway: g, t: t, stop: cancel, done: make(chan error, 1)}
	go func() { in.done <- g.Run(ctx) }()
	select {
	case <-up:
	case err := <-in.done:
		cancel()
		t.Fatalf("it did not start: %v", err)
	}
	t.Cleanup(func() { cancel() })
	return in
}

// end stops the gateway in order.
func (in *instance) end() {
	in.t.Helper()
	in.stop()
	if err := <-in.done; err != nil {
		in.t.Errorf("stop: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func zero(t *testing.T) config.Config {
	cfg := config.Default()
	cfg.Data = t.TempDir()
	cfg.Backends = map[string]config.Backend{config.LocalBackend: {JetStream: &config.JetStream{Embedded: true, MaxBytes: 1 << 30}}}
	return cfg
}

func (in *instance) post(stream, body string) (int, string) {
	in.t.Helper()
	return in.call("POST", in.events(stream), "application/x-ndjson", body)
}

// events is where events go, to a stream with a query behind it.
func (in *instance) events(stream string) string {
	name, query, _ := strings.Cut(stream, "?")
	return fmt.Sprintf("http://%s/v1/streams/%s/events?%s", in.addresses.http, name, query)
}

func (in *instance) want(status int, part, stream, body string) {
	in.t.Helper()
	if got, doc := in.post(stream, body); got != status || !strings.Contains(doc, part) {
		in.t.Errorf("%s <- %s: %d %s, want %d with %s", stream, body, got, doc, status, part)
	}
}

// rows reads back what a stream holds.
func (in *instance) rows(stream string) (all []admin.Row) {
	in.t.Helper()
	in.delivered()
	err := in.ReadRows(in.t.Context(), admin.Query{Stream: stream, Partition: admin.AllPartitions}, func(rows []admin.Row) error {
		all = append(all, rows...)
		return nil
	})
	if err != nil {
		in.t.Fatal(err)
	}
	return all
}

// delivered returns when everything that was taken is in its backend.
func (in *instance) delivered() {
	in.t.Helper()
	for end := time.After(2 * time.Minute); ; {
		waiting := 0
		for _, s := range *in.streams.Load() {
			waiting += s.forwarder.Waiting()
		}
		if waiting == 0 {
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-end:
			in.t.Fatalf("%d events are not delivered", waiting)
		}
	}
}

func wantCode(t *testing.T, err error, code event.Code) {
	t.Helper()
	if p, ok := errors.AsType[*event.Problem](err); !ok || p.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func TestStreamsOnFirstUse(t *testing.T) {
	// What fasthttp leaves behind: a clock for the process, and a worker pool's sweeper that ends at its next tick.
	defer leaks.None(t, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
	in := start(t, zero(t))
	in.want(200, `"accepted":2`, "web", "{}\n{\"a\":1}\n")
	in.want(404, "bad_stream_name", "Web", "{}")
	for i := range config.MaxStreams - 1 {
		in.want(200, `"accepted":1`, fmt.Sprintf("s%d", i), "{}")
	}
	in.want(404, "unknown_stream", "one-too-many", "{}")
	if rows := in.rows("web"); len(rows) != 2 || rows[0].Slot != event.NoSlot || rows[0].HasKey {
		t.Errorf("events without a key: %+v", rows)
	}
	in.end()
}

func TestConfiguredStreamsOnly(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"web": {Key: config.Key{JSON: "/k", Required: true}, Partitions: config.Partitions{Max: 4}}}
	in := start(t, cfg)
	defer in.end()
	in.want(404, "unknown_stream", "other", "{}")
	in.want(207, `"code":"key_required"`, "web", "{\"k\":\"x\"}\n{\"a\":1}\n") // A03, E01 (b)
	in.want(422, "key_not_scalar", "web", `{"k":{"x":1}}`)                     // D15 (b)
	in.want(422, "duplicate_name", "web", `{"k":1,"k":2}`)                     // G09 (a)
	in.want(200, `"accepted":1`, "web", `{"k":2882429806056571124}`)
	rows := in.rows("web")
	if len(rows) != 2 || string(rows[0].Key) != "x" && string(rows[1].Key) != "x" { // D15 (a)
		t.Fatalf("%+v", rows)
	}
	_, _, err := in.SetStream(t.Context(), "web", json.RawMessage(`{}`), admin.Match{})
	wantCode(t, err, event.ManagedByFile)
	wantCode(t, in.DeleteStream(t.Context(), "web", admin.Match{}), event.ManagedByFile)
}

func TestDefinitionsChangeByCompareAndSwap(t *testing.T) {
	cfg := zero(t)
	in := start(t, cfg)
	d, created, err := in.SetStream(t.Context(), "web", json.RawMessage(`{"limits":{"event":"10B"},"partitions":4}`), admin.Match{Absent: true})
	if err != nil || !created {
		t.Fatal(created, err)
	}
	in.want(413, `"scope":"event"`, "web", `{"a":"0123456789"}`)
	_, _, err = in.SetStream(t.Context(), "web", json.RawMessage(`{"partitions":4}`), admin.Match{Revision: d.Revision + 7})
	wantCode(t, err, event.EtagMismatch)
	_, _, err = in.SetStream(t.Context(), "web", json.RawMessage(`{"partitions":8}`), admin.Match{})
	wantCode(t, err, event.PartitionsFixed)
	_, _, err = in.SetStream(t.Context(), "web", json.RawMessage(`{"partitons":4}`), admin.Match{})
	wantCode(t, err, event.BadConfiguration)
	next, created, err := in.SetStream(t.Context(), "web", json.RawMessage(`{"partitions":4,"key":{"json":"/a"}}`), admin.Match{Revision: d.Revision})
	if err != nil || created || next.Revision <= d.Revision {
		t.Fatal(next, created, err)
	}
	in.want(200, `"accepted":1`, "web", `{"a":"0123456789"}`)
	in.end()

	in = start(t, cfg)
	defer in.end()
	again, err := in.Stream(t.Context(), "web")
	if err != nil || again.Revision != next.Revision || string(again.Document) != string(next.Document) {
		t.Errorf("after a restart %+v, before %+v (%v)", again, next, err)
	}
	in.want(200, `"accepted":1`, "web", `{"a":"again"}`)
	if rows := in.rows("web"); len(rows) != 2 || string(rows[1].Key) != "again" {
		t.Errorf("%+v", rows)
	}
}

func TestDeletedStreamGoesOnWhenItIsMadeAgain(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	definition := json.RawMessage(`{"partitions":1}`)
	for round := range 2 {
		if _, _, err := in.SetStream(t.Context(), "web", definition, admin.Match{}); err != nil {
			t.Fatal(err)
		}
		in.want(200, `"accepted":1`, "web", `{}`)
		if rows := in.rows("web"); len(rows) != round+1 || rows[round].Number != uint64(round+1) {
			t.Errorf("round %d: %+v", round, rows)
		}
		if err := in.DeleteStream(t.Context(), "web", admin.Match{}); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Stream(t.Context(), "web"); err == nil {
			t.Error("a deleted stream is still shown")
		}
	}
}

func TestUnknownPluginsAreRefused(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	_, err := in.Activate(t.Context(), "web", admin.Activation{Plugin: "nobody"})
	wantCode(t, err, event.UnknownPlugin)
	v, _, err := in.Upload(t.Context(), "empty", []byte("\x00asm\x01\x00\x00\x00"), nil)
	if err != nil {
		t.Fatal(err)
	}
	missing := ""
	for _, c := range v.Checks {
		if !c.OK {
			missing += c.Detail
		}
	}
	if !strings.Contains(missing, "hg_process") { // L01 (b)
		t.Errorf("the checks do not name the export that is missing: %+v", v.Checks)
	}
	if all, err := in.Plugins(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("a refused module is kept: %+v, %v", all, err)
	}
	wantCode(t, in.DeletePlugin(t.Context(), "nobody", ""), event.UnknownPlugin)
}

// TestBrokenChainRefuses: a stream whose plugins cannot be loaded lets nothing pass unfiltered.
func TestBrokenChainRefuses(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"web": {Plugins: []config.Plugin{{Name: "gone"}}}}
	in := start(t, cfg)
	defer in.end()
	in.want(503, `"code":"plugin_unavailable"`, "web", "{}")
	in.want(503, "headgate plugin push gone FILE", "web", "{}")
	failing := ""
	for _, d := range in.Dependencies() {
		if !d.OK {
			failing += d.Name + ": " + d.Detail
		}
	}
	if !strings.Contains(failing, "plugins: stream web") {
		t.Errorf("readiness does not name it: %q", failing)
	}
	if _, err := in.Deactivate(t.Context(), "web", "gone"); err != nil {
		t.Fatal(err)
	}
	in.want(200, `"accepted":1`, "web", "{}")
}

// TestFailedCreationLeavesNothing: a stream that could not be made is not found by the next start, and a stored one that
// cannot be started does not keep the others from starting.
func TestFailedCreationLeavesNothing(t *testing.T) {
	cfg := zero(t)
	in := start(t, cfg)
	in.want(200, `"accepted":1`, "good", "{}")
	in.want(200, `"accepted":1`, "s1", "{}")
	if err := in.DeleteStream(t.Context(), "s1", admin.Match{}); err != nil {
		t.Fatal(err)
	}
	_, _, err := in.SetStream(t.Context(), "s1", json.RawMessage(`{"partitions":8}`), admin.Match{}) // its table has 16
	wantCode(t, err, event.PartitionsFixed)
	in.want(200, `"accepted":1`, "s1", "{}")
	bad := config.Stream{Partitions: config.Partitions{Max: 8}}.WithDefaults()
	s1, err := in.Stream(t.Context(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.store.Streams.Write(t.Context(), "s1", bad.Document(), s1.Revision); err != nil { // as an older crash may have left it
		t.Fatal(err)
	}
	in.end()

	in = start(t, cfg)
	defer in.end()
	in.want(200, `"accepted":1`, "good", "{}")
	in.want(500, "did not start", "s1", "{}")
	if err := in.DeleteStream(t.Context(), "s1", admin.Match{}); err != nil {
		t.Fatal(err)
	}
	in.want(200, `"accepted":1`, "s1", "{}")
}

func TestNewStreamWithPluginsThatDoNotExist(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	_, _, err := in.SetStream(t.Context(), "web", json.RawMessage(`{"plugins":[{"name":"nobody"}]}`), admin.Match{})
	wantCode(t, err, event.UnknownPlugin)
	if _, err := in.Stream(t.Context(), "web"); err == nil {
		t.Error("the stream was made all the same")
	}
}

// TestASmallBackendTakesItsFirstRun: a frame larger than the first share of a small max_bytes goes in.
func TestASmallBackendTakesItsFirstRun(t *testing.T) {
	cfg := zero(t)
	cfg.Backends[config.LocalBackend].JetStream.MaxBytes = 48 << 20 // of which a stream begins with 1.2 MiB
	cfg.Streams = map[string]config.Stream{"web": {Partitions: config.Partitions{Max: 1}, Frame: config.Frame{Bytes: 4 << 20}}}
	in := start(t, cfg)
	random := make([]byte, 15<<10)
	var body strings.Builder
	for range 150 {
		if _, err := rand.Read(random); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&body, "{\"a\":%q}\n", base64.StdEncoding.EncodeToString(random))
	}
	for _, body := range []string{body.String(), `{"p":1}`} {
		if status, answer := in.call("POST", in.events("web?ack=delivered"), "application/x-ndjson", body); status != 200 {
			t.Errorf("%d %s", status, answer)
		}
	}
	in.end()
}

// TestF9FullBackendIsRefusedAtOnce: only the request that found the backend full waits, a second or so; the next ones for delivered
// are told so at once, and durable is what the spool makes it.
func TestF9FullBackendIsRefusedAtOnce(t *testing.T) {
	cfg := zero(t)
	cfg.HTTP.RequestTimeout = settings.Duration(time.Minute)
	cfg.Drain.Timeout = settings.Duration(time.Second)
	cfg.Backends[config.LocalBackend].JetStream.MaxBytes = 64 << 20 // of which a stream alone gets about three quarters
	in := start(t, cfg)
	random := make([]byte, 200<<10)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf("{\"a\":%q}", base64.StdEncoding.EncodeToString(random))
	in.want(200, `"accepted":1`, "other", "{}") // made now: making a stream cuts the shares anew
	status, answer := 200, ""
	for range 400 {
		if status, answer = in.call("POST", in.events("web?ack=delivered"), "application/json", body); status != 200 {
			break
		}
	}
	if status != 503 || !strings.Contains(answer, `"stored":"durable"`) || !strings.Contains(answer, "no room") {
		t.Fatalf("400 requests of 200 KiB went into 64 MiB, the last was answered %d %s", status, answer)
	}
	in.want(503, `"code":"backend_full"`, "web?ack=delivered", body)
	in.want(200, `"ack":"durable"`, "web", body) // the spool has room
	in.want(200, `"accepted":1`, "other", body)  // a full stream stops no other
	if d := in.Dependencies(); d[1].OK || !strings.Contains(d[1].Detail, "backend_full") {
		t.Errorf("readiness does not name it: %+v", d)
	}
	in.stop()
	if err := <-in.done; err != nil {
		t.Errorf("what the full backend did not take is in the spool: %v", err)
	}
}
