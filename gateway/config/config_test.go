package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func load(t *testing.T, doc string, set ...string) (Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "headgate.yaml")
	if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := Load(Sources{File: file, Set: set})
	return cfg, err
}

func TestNoConfigurationIsAConfiguration(t *testing.T) {
	cfg, warnings, err := Load(Sources{})
	if err != nil || len(warnings) != 0 {
		t.Fatal(err, warnings)
	}
	if !cfg.CreatesStreams() || cfg.HTTP.Listen != "127.0.0.1:8080" || cfg.Data != "headgate-data" {
		t.Errorf("%+v", cfg)
	}
}

func TestLoad(t *testing.T) {
	cfg, err := load(t, `
http: {read_timeout: 3s}
streams:
  web:
    key: {json: /remote_ip}
    plugins: [{name: nginx, config: {drop_status_from: 500}, on_error: pass}]
    partitions: 4
    linger: {waiting: 2ms}
  app: {key: required}
backends: {local: {jetstream: {embedded: true, max_bytes: 1GiB}}}
`, "http.listen=127.0.0.1:0", "streams.web.frame.bytes=64KiB")
	if err != nil {
		t.Fatal(err)
	}
	web, app := cfg.Streams["web"], cfg.Streams["app"]
	if cfg.CreatesStreams() {
		t.Error("streams are made on first use although the file names streams")
	}
	if time.Duration(cfg.HTTP.ReadTimeout) != 3*time.Second || cfg.HTTP.Listen != "127.0.0.1:0" {
		t.Errorf("http: %+v", cfg.HTTP)
	}
	if web.Key.JSON != "/remote_ip" || web.Partitions.Max != 4 || web.Frame.Bytes != 64<<10 || web.Frame.Events != 10_000 {
		t.Errorf("web: %+v", web)
	}
	if time.Duration(web.Linger.Waiting) != 2*time.Millisecond || time.Duration(web.Linger.Idle) != 50*time.Millisecond {
		t.Errorf("linger: %+v", web.Linger)
	}
	if !app.Key.Required || app.Codec != "zstd" {
		t.Errorf("app: %+v", app)
	}
}

func TestLoadNamesWhatIsWrong(t *testing.T) {
	for doc, want := range map[string]string{
		"htpp: {}":                                          `htpp: unknown setting; did you mean "http"?`,
		"streams: {Web: {}}":                                `streams.Web: not a stream name`,
		"streams: {web: {codec: rar}}":                      `streams.web.codec: `,
		"streams: {web: {partitions: 0.5}}":                 `partitions`,
		"streams: {web: {partitions: 1000}}":                `streams.web.partitions: must be 1 to 256, got 1000`,
		"streams: {web: {ack: {default: fast}}}":            `streams.web.ack: `,
		"streams: {web: {ack: {min: delivered}}}":           `default durable must lie between`,
		"streams: {web: {key: {json: remote_ip}}}":          `streams.web.key.json: `,
		"streams: {web: {key: {json: /a, header: b}}}":      `streams.web.key: set one of json, header and ce`,
		"streams: {web: {key: {header: Authorization}}}":    `streams.web.key.header: must not be a header with credentials`,
		"streams: {web: {limits: {event: 8MiB}}}":           `streams.web.limits.event: must leave 64KiB`,
		"streams: {web: {linger: {waiting: soon}}}":         `"soon" is not a duration`,
		"memory: 1KiB":                                      `memory: must be at least 16MiB`,
		"streams: {web: {plugins: [{name: A}]}}":            `streams.web.plugins.0.name: "A" is not a plugin name`,
		"streams: {web: {backend: lake}}":                   `streams.web.backend: must be one of`,
		"http: {listen: x, listen: y}":                      `parse YAML`,
		"streams: {web: {frame: {bytes: 5GiB}}}\nmemory: 1": `memory: must be at least`,
	} {
		_, err := load(t, doc)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", doc, err, want)
		}
	}
}

// TestEverythingWrongIsNamedAtOnce: a value that cannot be read hides neither unknown settings nor what is out of bounds.
func TestEverythingWrongIsNamedAtOnce(t *testing.T) {
	_, err := load(t, `
htpp: {}
memory: many
http: {listen: "8080", max_connections: 0, read_timeout: soon, idle_timeout: 0s, lisden: x}
admin: {listen: "localhost:http:1"}
drain: {timeout: 0s}
streams:
  web:
    partitions: lots
    codec: rar
    limits: {event: [1], body: 0.5KiB, inflated: 2GiB, dpeth: 3}
    plugins: [{name: 7, on_error: shrug, conifg: {}}, {name: A, on_error: "default_key=`+strings.Repeat("k", 1025)+`"}]
  app: 5
backends:
  bus: {jetstream: {url: 7, replicas: 9, retention: {full: never}}}
  lake: {webhook: {nodes: ["ftp://x"], timeout: -1ms}}
`, "nonsense", "http.max_requests_per_connection=-1")
	if err == nil {
		t.Fatal("it was taken")
	}
	for _, want := range []string{
		"--set: ", "htpp: unknown", "memory: \"many\"", "http.listen: \"8080\" is no address", "http.max_connections: must", "http.read_timeout: \"soon\"",
		"http.idle_timeout: must", "http.lisden: unknown", "http.max_requests_per_connection: must", "admin.listen: ", "drain.timeout: must",
		"streams.web.partitions: \"lots\"", "streams.web.codec: ", "streams.web.limits.event: ", "streams.web.limits.inflated: must",
		"streams.web.limits.dpeth: unknown", "streams.web.plugins.0.name: ", "streams.web.plugins.0.on_error: on_error \"shrug\"",
		"streams.web.plugins.0.conifg: unknown", "streams.web.plugins.1.name: ", "streams.web.plugins.1.on_error: on_error: the key has 1025 bytes",
		"streams.app: ", "backends.bus.jetstream.url: ", "backends.bus.jetstream.replicas: must", "backends.bus.jetstream.retention.full: must",
		"backends.lake.webhook.nodes: ", "backends.lake.webhook.timeout: ",
	} {
		if n := strings.Count("\n"+err.Error(), "\n"+want); n != 1 {
			t.Errorf("%d times %s", n, want)
		}
	}
	if t.Failed() || strings.Count(err.Error(), "\n")+1 != 27 {
		t.Errorf("%d lines:\n%v", strings.Count(err.Error(), "\n")+1, err)
	}
}

func TestSettingsOfTheEmbeddedBackendStandAlone(t *testing.T) {
	cfg, err := load(t, "", "backends.local.jetstream.max_bytes=43MiB")
	if err != nil {
		t.Fatal(err)
	}
	if local := cfg.Backends[LocalBackend].JetStream; !local.Embedded || local.MaxBytes != 43<<20 {
		t.Errorf("%+v", local)
	}
}

func TestStreamDocumentRoundTrip(t *testing.T) {
	first, err := ParseStream([]byte(`{"key":{"header":"X-Tenant","required":true},"plugins":[{"name":"p","config":{"a":[1,"x"]}}],"limits":{"event":"2MiB"}}`))
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseStream(first.Document())
	if err != nil {
		t.Fatalf("%s: %v", first.Document(), err)
	}
	if string(first.Document()) != string(again.Document()) {
		t.Errorf("%s\nbecomes\n%s", first.Document(), again.Document())
	}
}

func TestJetStreamBackends(t *testing.T) {
	for doc, want := range map[string]string{
		"local: {jetstream: {embedded: true, max_bytes: 1GiB, retention: {age: 7d, full: oldest}}}": "",
		"bus: {jetstream: {url: \"nats://a:4222,nats://b:4222\", replicas: 3, streams: 4}}":         "",
		"bus: {jetstream: {url: \"nats://a:4222\", creds: file:/does/not/exist}}":                   "backends.bus.jetstream: creds: stat /does/not/exist",
		"bus: {jetstream: {embedded: true}}":                                                        "under the name \"local\"",
		"local: {jetstream: {url: \"nats://a:4222\"}}":                                              "always the embedded one",
		"bus: {jetstream: {url: \"http://a\"}}":                                                     `scheme is nats, tls, ws or wss, not "http"`,
		"bus: {jetstream: {url: a}}":                                                                "write for example nats://127.0.0.1:4222",
		"bus: {jetstream: {url: \"nats://a\", replicas: 6}}":                                        "replicas: must be 1 to 5",
		"bus: {jetstream: {url: \"nats://a\", streams: 17}}":                                        "streams: must be 1 to 16",
		"bus: {jetstream: {url: \"nats://a\", retention: {full: oldest}}}":                          "oldest needs max_bytes",
		"local: {jetstream: {embedded: true, retention: {full: drop}}}":                             "retention.full: must be one of",
		"local: {jetstream: {embedded: true, retention: {age: 10ms}}}":                              "retention.age: must be at least 1s",
		"local: {jetstream: {embedded: true, streams: 2}}":                                          "are for an external server",
	} {
		_, err := load(t, "backends: {"+doc+"}")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", doc, err, want)
		}
	}
}
