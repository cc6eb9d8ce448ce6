package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward/jetstream"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/gateway/datafolder"
	"github.com/headgate-io/headgate/internal/natsd"
	"github.com/headgate-io/headgate/internal/settings"
)

// bus is a JetStream server that streams are delivered to, with what is needed to write, read and look after it.
type bus struct {
	name, where      string
	replicas, spread int
	maxBytes         settings.Bytes         // of all streams together; 0: no bound
	link             *jetstream.Link        // of the writer
	back             atomic.Pointer[func()] // called when it is connected again
	largest          int64                  // message that it took when it was reached last
	tail             bool                   // the spools keep a tail for it
	writer, readConn *nats.Conn             // apart, so that publishing does not wait behind reading
	reader           *jetstream.Reader
	keeper           *jetstream.Keeper
	damage           []natsd.Damage        // of the embedded one: what it has lost
	fault            func() string         // likewise: why it stores nothing
	room             func() (int64, error) // likewise: what its disk can take
}

// lost returns how far messages of a stream are lost, 0 when none are.
func (b *bus) lost(stream string) (upTo uint64) {
	for _, d := range b.damage {
		if d.Stream == jetstream.StreamName(stream) {
			upTo = max(upTo, d.To)
		}
	}
	return upTo
}

// complete takes the connections over, the writer's and the reader's.
func (b *bus) complete(cfg *config.JetStream, conns []*nats.Conn, log *slog.Logger) error {
	b.maxBytes = cfg.MaxBytes
	b.replicas, b.spread, b.writer, b.readConn = max(1, cfg.Replicas), max(1, cfg.Streams), conns[0], conns[1]
	b.link = jetstream.NewLink(b.writer, func() {
		if back := b.back.Load(); back != nil {
			(*back)()
		}
	})
	b.tail = cfg.Tail == "on" || cfg.Tail == "" && !cfg.Embedded
	var errReader, errKeeper error
	b.reader, errReader = jetstream.NewReader(b.readConn, b.spread)
	// The keeper's few calls may wait behind reading.
	b.keeper, errKeeper = jetstream.NewKeeper(b.readConn, jetstream.KeeperConfig{
		MaxBytes: int64(cfg.MaxBytes), MaxAge: time.Duration(cfg.Retention.Age), Oldest: cfg.Retention.Full == "oldest", Room: b.room,
	}, log.With("backend", b.name))
	return errors.Join(errReader, errKeeper)
}

// dialBuses connects to the external servers, and fails when one cannot be reached that never was.
func dialBuses(ctx context.Context, f *datafolder.Folder, cfg config.Config, log *slog.Logger) (all map[string]*bus, err error) {
	all = map[string]*bus{}
	for _, name := range slices.Sorted(maps.Keys(cfg.Backends)) {
		c := cfg.Backends[name].JetStream
		if c == nil || c.URL == "" {
			continue
		}
		at := jetstream.Address{URL: c.URL, Creds: c.Creds}
		before := f.ReachedBefore(name, at.String())
		at.Known = before.MaxPayload > 0
		conns, err := jetstream.Dial(ctx, at, log.With("backend", name), "forward", "read")
		if err == nil {
			all[name] = &bus{name: name, where: at.String(), largest: before.MaxPayload}
			err = all[name].complete(c, conns, log)
		}
		if err != nil {
			closeBuses(all)
			return nil, fmt.Errorf("backends.%s: %w", name, err)
		}
		nc := all[name].writer
		if !nc.IsConnected() {
			continue
		}
		if err := f.KeepReached(name, datafolder.Reached{URL: at.String(), MaxPayload: nc.MaxPayload()}); err != nil {
			closeBuses(all)
			return nil, fmt.Errorf("backends.%s: remember that it was reached: %w", name, err)
		}
		log.Info("backend opened", "backend", name, "server", nc.ConnectedUrlRedacted(), "version", nc.ConnectedServerVersion(),
			"max_payload", nc.MaxPayload(), "replicas", all[name].replicas, "streams", all[name].spread,
			"sync", "as the server is configured, which it does not tell; `sync_interval: always` makes delivered mean synced")
	}
	return all, nil
}

func closeBuses(all map[string]*bus) {
	for _, b := range all {
		b.close()
	}
}

func (b *bus) close() {
	b.writer.Close()
	b.readConn.Close()
}

// err says that the server is away, or stores nothing.
func (b *bus) err() error {
	if b.fault != nil {
		if why := b.fault(); why != "" {
			return fmt.Errorf("backend %s (%s) stores nothing: %s", b.name, b.where, why)
		}
	}
	if b.writer.IsConnected() {
		return nil
	}
	return fmt.Errorf("no connection to backend %s (%s); connecting again for ever", b.name, b.where)
}

// fits refuses a stream whose largest event is more than one message of the server takes.
func (b *bus) fits(cfg *config.Stream) error {
	if err := b.roomFor(cfg); err != nil {
		return event.Problemf(event.BadConfiguration, "%v", err)
	}
	largest := b.maxPayload()
	if int64(cfg.Limits.Event)+config.FrameOverhead <= largest {
		return nil
	}
	return event.Problemf(event.BadConfiguration, "limits.event: an event of %s and 64KiB around it do not fit into a message of backend %s (%s), "+
		"which takes %s; set limits.event to %s at most, or raise the server's max_payload",
		cfg.Limits.Event, b.name, b.where, settings.Bytes(largest), settings.Bytes(max(0, largest-config.FrameOverhead)))
}

// maxPayload is the largest message that the server takes, or took.
func (b *bus) maxPayload() int64 {
	if n := b.writer.MaxPayload(); n > 0 {
		return n
	}
	return b.largest
}

// open opens a stream's backend there; on a server that was away since the start, as soon as it is back.
func (b *bus) open(ctx context.Context, name, gateway string, partitions int, log *slog.Logger) (delivery, error) {
	if b.largest > 0 && !b.writer.IsConnected() {
		far := &distant{bus: b, make: func(ctx context.Context) (*jetstream.Backend, error) {
			return b.make(ctx, name, gateway, partitions, log)
		}}
		return delivery{Backend: far, Err: func() error { return errors.Join(b.err(), far.err()) }, close: func() {}, check: far.check,
			maxRun: jetstream.MaxRun(b.largest), away: true, bus: b}, nil
	}
	to, err := b.make(ctx, name, gateway, partitions, log)
	if err != nil {
		return delivery{}, err
	}
	state := func() error { return errors.Join(b.err(), to.Err()) }
	return delivery{Backend: to, Err: state, close: func() {}, check: to.Check, maxRun: to.MaxRun(), away: b.name != config.LocalBackend, bus: b}, nil
}

func (b *bus) make(ctx context.Context, name, gateway string, partitions int, log *slog.Logger) (*jetstream.Backend, error) {
	maxBytes, err := b.keeper.Grant(ctx, name, b.spread)
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", b.name, err)
	}
	to, err := jetstream.Open(ctx, b.writer, jetstream.Config{
		Stream: name, Gateway: gateway, MaxBytes: maxBytes, Replicas: b.replicas, Streams: b.spread, Partitions: partitions,
		OnFull: b.keeper.Full, Link: b.link, Own: b.fault != nil, Lost: b.lost(name),
	}, log)
	if err != nil {
		return nil, fmt.Errorf("backend %s (%s): %w", b.name, b.where, err)
	}
	return to, nil
}

// roomFor refuses a stream for whose events max_bytes is too little, or the bound that the free disk sets.
func (b *bus) roomFor(cfg *config.Stream) error {
	if least := config.LeastRoom(cfg.LargestRun()); b.maxBytes > 0 && b.maxBytes < least {
		return fmt.Errorf("limits.event: frames of this stream may need %s of backend %s, whose max_bytes (or half of the free disk) is %s", least, b.name, b.maxBytes)
	}
	if least := config.SureOf(cfg.Limits.Event); b.maxBytes > 0 && b.maxBytes < least {
		return fmt.Errorf("limits.event: for events of %s a stream needs %s of backend %s, whose max_bytes (or half of the free disk) is %s and of which it is sure of one part in %d",
			cfg.Limits.Event, least, b.name, b.maxBytes, config.SureShare)
	}
	return nil
}
