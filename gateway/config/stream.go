package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/ingest/cloudevents"
	"github.com/headgate-io/headgate/internal/compress"
	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/internal/settings"
	"github.com/headgate-io/headgate/partitioner"
	"github.com/headgate-io/headgate/plugins/builtin"
)

// Changeable refuses, by name, what a running stream cannot change.
func (s *Stream) Changeable(old *Stream) error {
	if err := s.Partitions.changeable(&old.Partitions); err != nil {
		return err
	}
	if !looser(old.Ordering, s.Ordering) {
		return event.Problemf(event.BadConfiguration, "ordering: can become looser while the stream exists (strict, then source, then none), not %s after %s; requests can ask for a stricter one (Headgate-Ordering)", s.Ordering, old.Ordering)
	}
	for name, same := range map[string]bool{
		"hash": s.Hash == old.Hash, "backend": s.Backend == old.Backend, "codec": s.Codec == old.Codec, "linger": s.Linger == old.Linger, "frame": s.Frame == old.Frame,
	} {
		if !same {
			return event.Problemf(event.BadConfiguration, "%s: cannot be changed while the stream exists; delete the stream and make it again (its events stay)", name)
		}
	}
	return nil
}

// Stream is the definition of a stream: its YAML in the configuration and its JSON in the admin API.
type Stream struct {
	Key        Key            `json:"key"`
	ID         ID             `json:"id"`
	Filters    []builtin.Rule `json:"filters,omitempty"`
	Plugins    []Plugin       `json:"plugins,omitempty"` // the chain of a stream that has no activation yet
	Ack        Ack            `json:"ack"`
	Ordering   string         `json:"ordering"` // strict, source or none
	Hash       string         `json:"hash"`     // siphash or murmur2
	Adaptive   Adaptive       `json:"adaptive"`
	Partitions Partitions     `json:"partitions"`
	Codec      string         `json:"codec"`
	Linger     Linger         `json:"linger"`
	Frame      Frame          `json:"frame"`
	Backend    string         `json:"backend"`
	Types      []string       `json:"types"` // media types taken as one opaque event, besides the JSON and text ones
	UTF8       string         `json:"utf8"`  // reject or pass: what becomes of JSON and text that is not UTF-8
	Limits     Limits         `json:"limits"`
	Rate       StreamRate     `json:"rate,omitzero"`
}

// Key says where the partition key of an event is found; at most one of JSON, Header and CE is set.
type Key struct {
	JSON     string `json:"json,omitempty"`   // JSON pointer into the event (RFC 6901)
	Header   string `json:"header,omitempty"` // request header
	CE       string `json:"ce,omitempty"`     // CloudEvents attribute
	Required bool   `json:"required,omitempty"`
}

// UnmarshalText reads the short form `key: required`.
func (k *Key) UnmarshalText(text []byte) error {
	if string(text) != "required" {
		return fmt.Errorf("%q is no key; write {json: /pointer}, {header: name}, {ce: attribute} or required", text)
	}
	*k = Key{Required: true}
	return nil
}

// Plugin is one plugin of a chain.
type Plugin struct {
	Name    string `json:"name"`
	Digest  string `json:"digest,omitempty"` // of the version, sha256:<hex>; empty: the newest
	Config  any    `json:"config,omitempty"` // handed to the guest as JSON
	OnError string `json:"on_error,omitempty"`

	Stage     string `json:"stage,omitempty"`      // active, shadow or canary; empty: active
	Percent   int    `json:"percent,omitempty"`    // of the producers, for a canary
	OnSuspend string `json:"on_suspend,omitempty"` // policy or previous; empty: policy
}

// Ack bounds what a producer may ask for.
type Ack struct {
	Default string `json:"default"`
	Min     string `json:"min"`
	Max     string `json:"max"`
}

// Linger is how long a lane waits for company at most before it seals a frame.
type Linger struct {
	Waiting settings.Duration `json:"waiting"` // while a request waits for durable or delivered
	Idle    settings.Duration `json:"idle"`    // otherwise
}

// Frame is when a frame is full.
type Frame struct {
	Bytes  settings.Bytes `json:"bytes"` // before compression
	Events int            `json:"events"`
}

// Limits bounds one request and its events.
type Limits struct {
	Body     settings.Bytes `json:"body"`
	Inflated settings.Bytes `json:"inflated"`
	Ratio    int            `json:"ratio"` // inflated to sent, after the first MiB
	Event    settings.Bytes `json:"event"`
	Events   int            `json:"events"` // a request
	Depth    int            `json:"depth"`  // of JSON
}

const (
	MaxStreams    = 32
	maxPartitions = 256
	// maxLinger keeps a request that waits for its frame well within its deadline.
	maxLinger = settings.Duration(5 * time.Second)
	// FrameOverhead is what a frame may need besides its largest event: metadata, codec, headers.
	FrameOverhead = 64 << 10
)

func opaqueTypes() []string {
	return []string{"application/octet-stream", "application/x-protobuf", "application/protobuf", "application/avro",
		"application/msgpack", "application/x-msgpack", "application/cbor"}
}

// WithDefaults returns a copy in which what was not set has its default.
func (s Stream) WithDefaults() Stream {
	orText := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	orText(&s.Ack.Default, "durable")
	orText(&s.Ack.Min, "accepted")
	orText(&s.Ack.Max, "delivered")
	orText(&s.Ordering, "source")
	orText(&s.Hash, partitioner.SipHash.String())
	or(&s.Adaptive.Hold, settings.Duration(30*time.Second))
	orText(&s.Codec, "zstd")
	orText(&s.Backend, LocalBackend)
	orText(&s.UTF8, "reject")
	or(&s.ID.Window.IDs, 1_000_000)
	or(&s.ID.Window.Age, settings.Duration(10*time.Minute))
	s.Partitions.setDefaults()
	or(&s.Linger.Waiting, settings.Duration(time.Millisecond))
	or(&s.Linger.Idle, settings.Duration(50*time.Millisecond))
	or(&s.Frame.Bytes, 512<<10)
	or(&s.Frame.Events, 10_000)
	or(&s.Limits.Body, 16<<20)
	or(&s.Limits.Inflated, 64<<20)
	or(&s.Limits.Ratio, 200)
	or(&s.Limits.Event, 1<<20)
	or(&s.Limits.Events, 100_000)
	or(&s.Limits.Depth, 64)
	if s.Types == nil {
		s.Types = opaqueTypes()
	}
	return s
}

func or[T int | settings.Bytes | settings.Duration](p *T, v T) {
	if *p == 0 {
		*p = v
	}
}

// Problem returns what is wrong with a definition that has its defaults, joined, each with its path in the stream.
func (s *Stream) Problem() error {
	var all []error
	add := func(path string, err error) { all = append(all, settings.At(path, err)) }
	add("key", s.Key.Problem())
	add("key.header", headerProblem(s.Key.Header))
	add("id.header", headerProblem(s.ID.Header))
	add("key.header", mustBe(!strings.EqualFold(s.Key.Header, "authorization"), "must not be a header with credentials"))
	if _, err := jsonscan.ParsePointer(s.Key.JSON); err != nil {
		add("key.json", err)
	}
	add("id", s.ID.problem(s.Limits.Events))
	add("filters", filterProblem(s.Filters))
	add("ack", s.Ack.problem())
	add("ordering", oneOf(s.Ordering, "strict", "source", "none"))
	add("hash", oneOf(s.Hash, partitioner.SipHash.String(), partitioner.Murmur2.String()))
	add("adaptive", s.Adaptive.problem())
	add("partitions", errors.Join(s.Partitions.problem(), s.elasticProblem()))
	if _, err := compress.ByName(s.Codec); err != nil {
		add("codec", err)
	}
	add("utf8", oneOf(s.UTF8, "reject", "pass"))
	add("frame.bytes", mustBe(s.Frame.Bytes >= 4<<10 && s.Frame.Bytes <= 4<<20, "must be 4KiB to 4MiB, got %s", s.Frame.Bytes))
	add("frame.events", mustBe(s.Frame.Events >= 1 && s.Frame.Events <= 1_000_000, "must be 1 to 1000000, got %d", s.Frame.Events))
	add("limits.event", mustBe(s.Limits.Event >= 1 && s.Limits.Event+FrameOverhead <= MaxPayload,
		"must leave 64KiB of the backend's largest message (%s), got %s", settings.Bytes(MaxPayload), s.Limits.Event))
	add("limits.inflated", mustBe(s.Limits.Inflated <= 1<<30, "must be at most 1GiB, got %s", s.Limits.Inflated))
	add("limits", mustBe(s.Limits.Body > 0 && s.Limits.Inflated > 0 && s.Limits.Ratio > 0 && s.Limits.Events > 0, "body, inflated, ratio and events must be more than 0"))
	add("linger", mustBe(s.Linger.Waiting <= maxLinger && s.Linger.Idle <= maxLinger, "waiting and idle must be at most %s", time.Duration(maxLinger)))
	add("limits.depth", mustBe(s.Limits.Depth >= 1 && s.Limits.Depth <= 1000, "must be 1 to 1000, got %d", s.Limits.Depth))
	add("rate", s.Rate.problem())
	for i, p := range s.Plugins {
		add(fmt.Sprintf("plugins.%d", i), p.problem(s.Plugins[:i]))
	}
	return errors.Join(all...)
}

// headerProblem refuses what no header can be called (RFC 9110 section 5.1).
func headerProblem(name string) error {
	return mustBe(name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") == "", "%q is no name of a header; it looks like X-Tenant", name)
}

// Problem returns what is wrong with it.
func (k *Key) Problem() error {
	if k.JSON != "" && k.Header != "" || k.CE != "" && k.JSON+k.Header != "" {
		return errors.New("set one of json, header and ce")
	}
	return settings.At("ce", mustBe(k.CE == "" || cloudevents.ValidName(k.CE), "%q is not a CloudEvents attribute: they consist of a-z and 0-9", k.CE))
}

func (a *Ack) problem() error {
	def, ok1 := event.ParseLevel(a.Default)
	low, ok2 := event.ParseLevel(a.Min)
	high, ok3 := event.ParseLevel(a.Max)
	if !ok1 || !ok2 || !ok3 {
		return errors.New("default, min and max are each accepted, durable or delivered")
	}
	return mustBe(low <= def && def <= high, "default %s must lie between min %s and max %s", a.Default, a.Min, a.Max)
}

// ParseStream reads the JSON (or YAML) definition of a stream strictly and fills in the defaults.
func ParseStream(doc []byte) (Stream, error) {
	tree, err := settings.Parse(doc)
	if err != nil {
		return Stream{}, err
	}
	var s Stream
	failed := tree.Decode(&s)
	zeros := s.zeros(tree)
	s = s.WithDefaults()
	return s, errors.Join(failed, settings.Except(errors.Join(zeros, s.Problem()), failed))
}

// Document is the definition as JSON, the inverse of ParseStream.
func (s *Stream) Document() []byte {
	doc, err := json.Marshal(s)
	if err != nil {
		panic("BUG: gateway: marshal stream definition: " + err.Error())
	}
	return doc
}

// ValidName reports whether name can be a stream or plugin: [a-z0-9][a-z0-9_-]{0,62}.
func ValidName(name string) bool {
	if name == "" || len(name) > 63 || name[0] == '_' || name[0] == '-' {
		return false
	}
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}
