// Package config is the configuration: every setting of `headgate serve` and of a stream, with its default, its bounds, and what
// cannot be had together. It opens and starts nothing.
package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/headgate-io/headgate/ingest"
	"github.com/headgate-io/headgate/internal/settings"
)

// Config is the whole configuration: every setting of `headgate serve`. The zero value with WithDefaults works.
// Field names are the YAML keys; Default has the defaults.
type Config struct {
	Data       string             `json:"data"`   // data folder; made when it is missing
	Memory     settings.Bytes     `json:"memory"` // bytes of events held in memory, requests and lanes together
	Log        Log                `json:"log"`
	HTTP       HTTP               `json:"http"`
	QUIC       QUIC               `json:"quic"`
	Admin      Admin              `json:"admin"`
	Auth       *Auth              `json:"auth"` // nil: everybody may do everything
	Rates      Rates              `json:"rates"`
	Plugins    Plugins            `json:"plugins"`
	Drain      Drain              `json:"drain"`
	Spool      Spool              `json:"spool"`
	AutoCreate *bool              `json:"auto_create"` // make streams on first use; default: true when none is configured
	Streams    map[string]Stream  `json:"streams"`
	Backends   map[string]Backend `json:"backends"`

	Idempotency Idempotency `json:"idempotency"`
}

// Log says what is logged, and how.
type Log struct {
	Level  string `json:"level"`  // debug, info, warn or error
	Format string `json:"format"` // text or json; default: text on a terminal, else json
}

// Plugins bounds WebAssembly guests.
type Plugins struct {
	Memory   settings.Bytes    `json:"memory"`   // of one instance
	Deadline settings.Duration `json:"deadline"` // of a call for at most 256 events

	MaxModules int `json:"max_modules"` // that are stored, of all versions of all plugins

	TrustedKeys      []string `json:"trusted_keys"`      // public keys of minisign, or file:PATH
	RequireSignature bool     `json:"require_signature"` // nothing runs that none of them has signed
}

// Idempotency bounds what is remembered of requests with an Idempotency-Key.
type Idempotency struct {
	Window settings.Duration `json:"window"` // after the answer
	Keys   int               `json:"keys"`   // the oldest are forgotten first when there are more
}

// Drain bounds the orderly stop.
type Drain struct {
	Timeout settings.Duration `json:"timeout"` // then what is not delivered yet is given up, and said so
}

// Default is the zero configuration: what `headgate serve` runs.
func Default() Config {
	return Config{
		Data: "headgate-data", Memory: 256 << 20,
		Log: Log{Level: "info"},
		HTTP: HTTP{
			Listen: "127.0.0.1:8080", ReadTimeout: settings.Duration(10 * time.Second), IdleTimeout: settings.Duration(90 * time.Second),
			RequestTimeout: settings.Duration(30 * time.Second),
			MaxConnections: 20_000, MaxConnectionsPerAddress: 1_000, MaxConnectionAge: settings.Duration(5 * time.Minute),
		},
		QUIC:    QUIC{IdleTimeout: settings.Duration(30 * time.Second)},
		Admin:   Admin{Listen: "127.0.0.1:9090"},
		Plugins: Plugins{Memory: 64 << 20, Deadline: settings.Duration(100 * time.Millisecond), MaxModules: 64},
		Drain:   Drain{Timeout: settings.Duration(30 * time.Second)},
		Spool:   Spool{Tail: Tail{Bytes: 64 << 20, Age: settings.Duration(10 * time.Minute)}},

		Idempotency: Idempotency{Window: settings.Duration(10 * time.Minute), Keys: 100_000},

		Backends: map[string]Backend{},
	}
}

// Sources are where a configuration comes from, weakest first: the file, the environment, --set arguments.
type Sources struct {
	File    string   // path; empty for none
	Environ []string // NAME=value; HEADGATE_... are settings
	Set     []string // path=value
}

// Load reads, decodes and validates a configuration. Warnings are for the log; err lists every error, one a line, each
// with the path of the setting.
func Load(src Sources) (cfg Config, warnings []string, err error) {
	tree := settings.Tree{}
	if src.File != "" {
		doc, err := os.ReadFile(src.File)
		if err != nil {
			return cfg, nil, fmt.Errorf("read configuration: %w", err)
		}
		if tree, err = settings.Parse(doc); err != nil {
			return cfg, nil, fmt.Errorf("%s: %w", src.File, err)
		}
	}
	var all []error
	reserved := []string{"HEADGATE_URL", "HEADGATE_ADMIN_URL", "HEADGATE_QUIC_URL", "HEADGATE_CONFIG", "HEADGATE_TOKEN"}
	warnings, err = tree.Environment(src.Environ, "HEADGATE_", Config{}, reserved...)
	all = append(all, err)
	for _, arg := range src.Set {
		if err := tree.SetArgument(arg); err != nil {
			all = append(all, fmt.Errorf("--set: %w", err))
		}
	}
	embed(tree)
	cfg = Default()
	failed := tree.Decode(&cfg)
	zeros := cfg.zeros(tree)
	for name, s := range cfg.Streams {
		cfg.Streams[name] = s.WithDefaults()
	}
	all = append(all, failed, settings.Except(errors.Join(zeros, cfg.Validate()), failed))
	if err := errors.Join(all...); err != nil {
		return cfg, warnings, err
	}
	return cfg, append(warnings, cfg.warnings(time.Now())...), nil
}

// embed lets settings of the backend that is there without being configured stand alone: that it is embedded need not be
// said again.
func embed(tree settings.Tree) {
	backends, _ := tree["backends"].(map[string]any)
	local, _ := backends[LocalBackend].(map[string]any)
	if js, ok := local["jetstream"].(map[string]any); ok && js["url"] == nil && js["embedded"] == nil {
		js["embedded"] = true
	}
}

// Validate returns every contradiction and value out of bounds, one a line, each with its path.
func (c *Config) Validate() error {
	var all []error
	add := func(path string, err error) {
		if err != nil {
			all = append(all, settings.At(path, err))
		}
	}
	add("data", mustBe(c.Data != "", "must name a folder"))
	add("memory", mustBe(c.Memory >= 16<<20, "must be at least 16MiB, got %s", c.Memory))
	add("plugins.memory", mustBe(c.Plugins.Memory >= 1<<20 && c.Plugins.Memory <= 256<<20, "must be 1MiB to 256MiB, got %s", c.Plugins.Memory))
	deadline := time.Duration(c.Plugins.Deadline)
	add("plugins.deadline", mustBe(deadline >= time.Millisecond && deadline <= 10*time.Second, "must be 1ms to 10s, got %s", deadline))
	add("plugins.max_modules", mustBe(c.Plugins.MaxModules >= 1 && c.Plugins.MaxModules <= 10_000, "must be 1 to 10000, got %d", c.Plugins.MaxModules))
	_, err := c.Plugins.Trust()
	add("plugins", err)
	add("log.level", oneOf(c.Log.Level, "debug", "info", "warn", "error"))
	add("log.format", oneOf(c.Log.Format, "", "text", "json"))
	add("http.tls", c.HTTP.TLS.problem())
	add("http.cors", c.HTTP.CORS.problem())
	add("http.listen", mustBe(c.HTTP.Listen != ingest.Nowhere || c.HTTP.TLS.On(), "none, and http.tls is not set: there would be no way in"))
	add("spool", c.Spool.problem())
	add("idempotency.window", mustBe(c.Idempotency.Window >= settings.Duration(time.Second), "must be at least 1s, got %s", time.Duration(c.Idempotency.Window)))
	add("idempotency.keys", mustBe(c.Idempotency.Keys >= 1 && c.Idempotency.Keys <= 10_000_000, "must be 1 to 10000000, got %d", c.Idempotency.Keys))
	add("http", c.HTTP.problem())
	add("quic", c.QUIC.problem())
	add("admin.listen", address(c.Admin.Listen))
	add("drain.timeout", mustBe(c.Drain.Timeout > 0, "must be more than 0; a second signal stops at once"))
	add("streams", mustBe(len(c.Streams) <= MaxStreams, "at most %d, got %d", MaxStreams, len(c.Streams)))
	for _, name := range slices.Sorted(maps.Keys(c.Backends)) {
		b := c.Backends[name]
		add("backends."+name, mustBe(ValidName(name), "not a name; use a-z, 0-9, _ and -, at most 63"))
		add("backends."+name, b.problem(name))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Streams)) {
		s := c.Streams[name]
		add("streams."+name, mustBe(ValidName(name), "not a stream name; use a-z, 0-9, _ and -, at most 63"))
		add("streams."+name, errors.Join(s.Problem(), c.KnowsBackend(s.Backend)))
	}
	for name, b := range c.Backends {
		add("backends."+name+".jetstream.max_bytes", c.roomIn(name, b.JetStream))
	}
	_, err = c.Tokens()
	add("auth.tokens", err)
	add("rates", c.rateProblem())
	return errors.Join(append(all, c.contradictions())...)
}

// KnowsBackend refuses the name of a backend that is not configured; the embedded one needs no configuration.
func (c *Config) KnowsBackend(name string) error {
	valid := append(slices.Sorted(maps.Keys(c.Backends)), LocalBackend)
	if err := oneOf(name, valid...); err != nil {
		return settings.At("backend", err)
	}
	return nil
}

// CreatesStreams says whether a request may make a stream.
func (c *Config) CreatesStreams() bool {
	if c.AutoCreate != nil {
		return *c.AutoCreate
	}
	return len(c.Streams) == 0
}

func mustBe(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

func oneOf(got string, valid ...string) error {
	return mustBe(slices.Contains(valid, got), "must be one of %q, got %q", valid, got)
}

// FirstStream is one that takes events: the first by name, or demo, which is made on first use.
func (c *Config) FirstStream() string {
	for _, name := range slices.Sorted(maps.Keys(c.Streams)) {
		return name
	}
	return "demo"
}
