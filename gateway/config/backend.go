package config

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate-io/headgate/forward/jetstream"
	"github.com/headgate-io/headgate/forward/webhook"
	"github.com/headgate-io/headgate/internal/settings"
)

// Backend is one place frames go to; exactly one kind is set.
type Backend struct {
	JetStream *JetStream `json:"jetstream"`
	Webhook   *Webhook   `json:"webhook"`
}

// Webhook is a set of HTTP nodes, of which each holds a share of the partitions.
type Webhook struct {
	Nodes   []string          `json:"nodes"`   // URLs that runs are posted to
	Timeout settings.Duration `json:"timeout"` // of one post; 10 s
}

// LocalBackend is the name of the backend that is there without being configured: the embedded JetStream.
const LocalBackend = "local"

// problem returns what is wrong with the definition of the backend called name.
func (b *Backend) problem(name string) error {
	switch {
	case b.JetStream != nil && b.Webhook != nil:
		return fmt.Errorf("set jetstream or webhook, not both")
	case b.JetStream != nil:
		return settings.At("jetstream", b.JetStream.problem(name))
	case b.Webhook != nil && name == LocalBackend:
		return settings.At("webhook", fmt.Errorf("%q is always the embedded backend; give the webhook another name, and name it as the backend of a stream", LocalBackend))
	case b.Webhook != nil:
		return settings.At("webhook.nodes", webhook.CheckNodes(b.Webhook.Nodes))
	}
	return fmt.Errorf("set jetstream or webhook")
}

// JetStream is a NATS JetStream server: the one inside the process, or one (or a cluster) that URL reaches.
type JetStream struct {
	Embedded  bool           `json:"embedded"`
	URL       string         `json:"url"`       // nats://host:4222, several of a cluster with commas
	Creds     string         `json:"creds"`     // file:PATH, env:NAME or a path
	Replicas  int            `json:"replicas"`  // of each stream in a cluster; 1
	Streams   int            `json:"streams"`   // JetStream streams that the partitions of a stream are spread over; 1
	MaxBytes  settings.Bytes `json:"max_bytes"` // of all its streams together; 0: no bound, for the embedded one the smaller of 10 GiB and half of the free space
	Retention Retention      `json:"retention"`
	Tail      string         `json:"tail"` // on or off: the spools keep what is delivered for a while; on, for the embedded one off
}

// Retention says what is removed when. The last run of a lane always stays.
type Retention struct {
	Age  settings.Duration `json:"age"`  // runs that are older go; 0: none go by age
	Full string            `json:"full"` // refuse what is new, or let the oldest go; refuse
}

const (
	maxSpread   = 16
	maxReplicas = 5
)

// problem returns what is wrong with the definition of the backend called name.
func (c *JetStream) problem(name string) error {
	r := c.Retention
	check := func(path string, ok bool, format string, args ...any) error {
		return settings.At(path, mustBe(ok, format, args...))
	}
	all := errors.Join(
		check("replicas", c.Replicas >= 0 && c.Replicas <= maxReplicas, "must be 1 to %d, got %d", maxReplicas, c.Replicas),
		check("streams", c.Streams >= 0 && c.Streams <= maxSpread, "must be 1 to %d, got %d", maxSpread, c.Streams),
		check("retention.age", r.Age == 0 || time.Duration(r.Age) >= time.Second, "must be at least 1s"),
		settings.At("tail", oneOf(c.Tail, "", "on", "off")),
		settings.At("retention.full", oneOf(r.Full, "", "refuse", "oldest")),
		check("retention.full", r.Full != "oldest" || c.Embedded || c.MaxBytes > 0, "oldest needs max_bytes, or nothing is ever full"))
	if c.URL == "" {
		return errors.Join(all,
			mustBe(c.Embedded && name == LocalBackend, "set url, or embedded: true under the name %q", LocalBackend),
			mustBe(c.Creds == "" && c.Replicas <= 1 && c.Streams <= 1, "creds, replicas and streams are for an external server: set url"))
	}
	return errors.Join(all, jetstream.Address{URL: c.URL, Creds: c.Creds}.Check(),
		mustBe(!c.Embedded && name != LocalBackend, "set url or embedded, not both; %q is always the embedded one", LocalBackend))
}
