package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/certs"
)

// TestCheckNamesWhatCannotWork: what is found before anything is opened.
func TestCheckNamesWhatCannotWork(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CREDS_OF_A_TEST", "no credentials")
	for doc, want := range map[string]string{
		"http: {max_connections: 1.9}":                                                                                   "http.max_connections: wants a whole number, got 1.9",
		"http: {max_connections: 1e30}":                                                                                  "http.max_connections: 1e+30 is too large",
		"http: {max_connections: 20.0}":                                                                                  "",
		"idempotency: {keys: 0.5}":                                                                                       "idempotency.keys: wants a whole number",
		"streams: {web: {partitions: 16.7}}":                                                                             "streams.web.partitions: ",
		"streams: {web: {partitions: {max: 16.7}}}":                                                                      "streams.web.partitions.max: wants a whole number",
		"streams: {web: {frame: {events: 1.5}}}":                                                                         "streams.web.frame.events: wants a whole number",
		"streams: {web: {limits: {event: 0.5}}}":                                                                         `streams.web.limits.event: "0.5" is not a whole number of bytes`,
		"rates: {caller: {bytes: 0.5}}":                                                                                  "rates.caller.bytes: ",
		"rates: {caller: {events: 0.5, burst: 1s}}":                                                                      "",
		"rates: {caller: {events: 0.0001}}":                                                                              "rates.caller.events: must be 0.001 to",
		"rates: {caller: {events: .nan}}":                                                                                "rates.caller.events: must be 0.001 to",
		"streams: {web: {rate: {key: {events: 0.9, burst: 1s}}}}":                                                        "",
		"streams: {web: {partitions: 0}}":                                                                                "streams.web.partitions: must be more than 0",
		"streams: {web: {limits: {depth: 0, ratio: 0}}}":                                                                 "streams.web.limits.depth: must be more than 0",
		"streams: {web: {limits: {ratio: 0}}}":                                                                           "streams.web.limits.ratio: must be more than 0",
		"streams: {web: {frame: {events: 0}}}":                                                                           "streams.web.frame.events: must be more than 0",
		"streams: {web: {linger: {waiting: 0s}}}":                                                                        "streams.web.linger.waiting: must be more than 0",
		"streams: {web: {partitions: }}":                                                                                 "",
		"backends: {lake: {webhook: {nodes: ['http://a'], timeout: 0s}}}":                                                "backends.lake.webhook.timeout: must be more than 0",
		"backends: {lake: {webhook: {nodes: ['http://a:99999']}}}":                                                       "backends.lake.webhook.nodes: node \"http://a:99999\": the port must be 1 to 65535",
		"backends: {lake: {webhook: {nodes: ['http://a:65535', 'https://b']}}}":                                          "",
		"backends: {local: {webhook: {nodes: ['http://a']}}}":                                                            "backends.local.webhook: \"local\" is always the embedded backend",
		"backends: {bus: {jetstream: {url: nats://a, creds: file:/does/not/exist}}}":                                     "creds: stat /does/not/exist",
		"backends: {bus: {jetstream: {url: nats://a, creds: /does/not/exist}}}":                                          "creds: stat /does/not/exist",
		"backends: {bus: {jetstream: {url: nats://a, creds: env:NOPE_OF_A_TEST}}}":                                       "creds: the variable NOPE_OF_A_TEST is not set",
		"backends: {bus: {jetstream: {url: nats://a, creds: env:CREDS_OF_A_TEST}}}":                                      "creds: they hold no",
		"backends: {bus: {jetstream: {url: nats://a, creds: 'file:" + file + "'}}}":                                      "creds: they hold no",
		"backends: {bus: {jetstream: {url: nats://a, creds: hunter2}}}":                                                  "creds: write file:PATH or env:NAME",
		"backends: {local: {jetstream: {max_bytes: 1KiB}}}":                                                              "backends.local.jetstream.max_bytes: must be at least 43MiB, got 1KiB",
		"backends: {local: {jetstream: {max_bytes: 43MiB}}}":                                                             "",
		"backends: {local: {jetstream: {max_bytes: 5MiB}}}\nstreams: {web: {limits: {event: 16KiB}}}":                    "",
		"auto_create: true\nbackends: {local: {jetstream: {max_bytes: 5MiB}}}\nstreams: {web: {limits: {event: 16KiB}}}": "must be at least 43MiB, got 5MiB: a stream is sure of one part in 40, since there may be 32 and their dead letters, and it must hold the largest event (limits.event of a stream made on first use is 1MiB)",
		"backends: {local: {jetstream: {max_bytes: 50MiB}}}\nstreams: {web: {limits: {event: 2MiB}}}":                    "must be at least 83MiB",
		"streams: {web: {key: {header: 'bad header'}}}":                                                                  `streams.web.key.header: "bad header" is no name of a header`,
		"streams: {web: {id: {header: 'bad:header'}}}":                                                                   `streams.web.id.header: "bad:header" is no name`,
		"admin: {hosts: ['http://foo']}":                                                                                 `admin.hosts.0: "http://foo" is a URL; write the name alone, foo`,
		"admin: {hosts: ['foo:80']}":                                                                                     `admin.hosts.0: "foo:80" has a port`,
		"admin: {hosts: [foo, 'a b']}":                                                                                   `admin.hosts.1: "a b" is no host name`,
		"admin: {hosts: [gate.example.com, gate]}":                                                                       "",
		"http: {listen: '256.1.1.1:80'}":                                                                                 `http.listen: "256.1.1.1:80": "256.1.1.1" is neither`,
		"http: {listen: 'localhost:99999'}":                                                                              "http.listen: ",
		"http: {listen: 'a b:80'}":                                                                                       "is neither",
		"data: " + file:                                                                                                  "data: " + file + " is a file",
		"data: " + file + "/below":                                                                                       "data: " + file + " is a file",
		"data: " + filepath.Join(filepath.Dir(file), "new", "folder"):                                                    "",
		"http: {listen: '127.0.0.1:9090'}":                                                                               "admin.listen: 127.0.0.1:9090 cannot be listened on beside http.listen",
		"http: {listen: ':9090'}":                                                                                        "admin.listen: ",
		"http: {listen: 'localhost:9090'}":                                                                               "admin.listen: ",
		"http: {listen: '127.0.0.2:9090'}":                                                                               "",
		"http: {listen: '127.0.0.1:0'}\nadmin: {listen: '127.0.0.1:0'}":                                                  "",
		"http: {listen: '0.0.0.0:9090'}\nadmin: {listen: '[::1]:9090'}":                                                  "",
		"http: {listen: '127.0.0.1:8443', tls: {listen: '127.0.0.1:8443'}}":                                              "http.tls.listen: ",
		"http: {listen: none, tls: {listen: '127.0.0.1:9090'}}":                                                          "admin.listen: 127.0.0.1:9090 cannot be listened on beside http.tls.listen",
	} {
		_, err := load(t, doc)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s:\n got %v\nwant %s", doc, err, want)
		}
	}
}

// TestOtherKindsAreNamed: what is expected is said in words of YAML, with an example.
func TestOtherKindsAreNamed(t *testing.T) {
	for doc, want := range map[string]string{
		"streams: {web: {linger: 5ms}}":                    "streams.web.linger: wants a map of settings, like {waiting: 1ms, idle: 50ms}; got a word or text",
		"log: debug":                                       "log: wants a map of settings, like {level: debug, format: json}; got",
		"plugins: [accesslog]":                             "plugins: wants a map of settings, like {memory: 64MiB}; the plugins of a stream stand at streams.NAME.plugins; got a list",
		"streams: {web: {plugins: accesslog}}":             "streams.web.plugins: wants a list, like [{name: accesslog,",
		"streams: {web: {plugins: [[accesslog]]}}":         "streams.web.plugins.0: wants a map of settings, like {name: accesslog,",
		"streams: {web: {ack: fast}}":                      `streams.web.ack: "fast" is no level; write accepted, durable or delivered`,
		"streams: {web: {ack: [durable]}}":                 "streams.web.ack: wants a map of settings, like {default: durable, max: delivered}; got a list",
		"streams: {web: {types: text/csv}}":                "streams.web.types: wants a list, like [one, another]; got",
		"streams: [web]":                                   "streams: wants a map of names, like {NAME: {key: {json: /user/id}}}; got a list",
		"streams: web":                                     "streams: wants a map of names",
		"memory: [1]":                                      "memory: wants a value like 512KiB; got a list",
		"http: {read_timeout: {s: 1}}":                     "http.read_timeout: wants a value like 30s; got a map",
		"rates: {caller: 100}":                             "rates.caller: wants a map of settings, like {events: 100, burst: 2s}; got a number",
		"drain: 10s":                                       "drain: wants a map of settings: timeout; got a word or text",
		"auth: hunter2":                                    "auth: wants a map of settings, like {tokens: [{id: web,",
		"backends: {lake: {webhook: {nodes: 'http://a'}}}": "backends.lake.webhook.nodes: wants a list",
		"- a\n- b":                                         "line 1: the document wants a map of settings",
		"hunter2":                                          "the document wants a map of settings",
	} {
		_, err := load(t, doc)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s:\n got %v\nwant %s", doc, err, want)
		}
	}
}

// TestShortForms: what needs no more than a word is one.
func TestShortForms(t *testing.T) {
	cfg, err := load(t, "streams: {web: {ack: accepted, plugins: [accesslog, {name: geo, on_error: pass}]}}")
	if err != nil {
		t.Fatal(err)
	}
	web := cfg.Streams["web"]
	if web.Ack != (Ack{"accepted", "accepted", "delivered"}) || len(web.Plugins) != 2 || web.Plugins[0].Name != "accesslog" || web.Plugins[1].OnError != "pass" {
		t.Errorf("%+v", web)
	}
}

func TestWarnings(t *testing.T) {
	pair, err := certs.Development(t.TempDir(), time.Now().Add(-10*365*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	ahead, err := certs.Development(t.TempDir(), time.Now().Add(365*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	tls := func(p certs.Pair) string { return fmt.Sprintf("http: {tls: {cert: %q, key: %q}}\n", p.Cert, p.Key) }
	tokens := fmt.Sprintf("auth: {tokens: [{id: a, secret: %q, streams: [wbe], actions: [send]}]}\n", secretFile(t, "0123456789abcdef"))
	for doc, want := range map[string]string{
		tls(pair):  "http.tls.cert: the certificate " + pair.Cert + " ended at ",
		tls(ahead): "http.tls.cert: the certificate " + ahead.Cert + " begins at ",
		"streams: {web: {limits: {body: 512KiB}}}":     "streams.web.limits: an event of more than 512KiB (body) can come compressed only",
		"streams: {web: {limits: {inflated: 512KiB}}}": "streams.web.limits: no event can have the 1MiB of event",
		tokens + "auto_create: false":                  `auth.tokens.0.streams: stream "wbe" is not configured, and auto_create is false`,
		tokens + "auto_create: true":                   "",
		"streams: {web: {limits: {event: 1MiB}}}":      "",
	} {
		file := filepath.Join(t.TempDir(), "headgate.yaml")
		if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		_, warnings, err := Load(Sources{File: file})
		all := strings.Join(warnings, "\n")
		if err != nil || want == "" && all != "" || !strings.HasPrefix(all, want) || strings.Count(all, "\n") > 0 {
			t.Errorf("%s:\n got %s (%v)\nwant %s", doc, all, err, want)
		}
	}
}

// TestTheHintNamesAStreamThatIsThere: where the file names streams, none is made on first use.
func TestTheHintNamesAStreamThatIsThere(t *testing.T) {
	cfg := Default()
	if got := cfg.FirstStream(); got != "demo" {
		t.Errorf("without streams: %s", got)
	}
	cfg.Streams = map[string]Stream{"web": {}, "app": {}}
	if got := cfg.FirstStream(); got != "app" {
		t.Errorf("with web and app: %s", got)
	}
}
