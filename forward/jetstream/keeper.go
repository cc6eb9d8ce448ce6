package jetstream

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
)

// KeeperConfig says how much a backend may hold, and for how long. The zero value keeps everything.
type KeeperConfig struct {
	MaxBytes int64         // of all streams together; 0: sizes are not looked after
	MaxAge   time.Duration // what is older goes; 0: nothing goes by age
	Oldest   bool          // a full stream loses its oldest runs; else it refuses new ones
	Every    time.Duration // how often it looks; 0: 2 s

	// Room says how many bytes the disk of the backend can still take: a stream that grew beyond would find the disk full, which
	// is worse than to be full itself. nil: the disk is somebody else's.
	Room func() (int64, error)
}

const (
	defaultEvery = 2 * time.Second
	// lanesAtOnce bounds the purges of one look; the rest is for the next.
	lanesAtOnce = 256
)

// Keeper looks after the streams of a backend: it shares the space out among them and removes what need not be kept, but
// never the last message of a lane, at which the lane goes on. Its methods may be called concurrently.
type Keeper struct {
	cfg KeeperConfig
	nc  *nats.Conn
	js  js.JetStream
	log *slog.Logger

	wake  chan struct{} // a token: look before the next tick
	held  atomic.Pointer[map[string]Holding]
	needs needs

	mu      sync.Mutex        // one look at a time
	aging   time.Time         // not before then it is looked for what is too old
	cleared map[string]uint64 // by subject: up to where it was cleared last
	warned  map[string]bool   // streams that are full of last messages
}

// NewKeeper starts nothing. nc stays the caller's.
func NewKeeper(nc *nats.Conn, cfg KeeperConfig, log *slog.Logger) (*Keeper, error) {
	cfg.Every = cmp.Or(cfg.Every, defaultEvery)
	api, err := js.New(nc, js.WithDefaultTimeout(defaultTimeout))
	if err != nil {
		return nil, fmt.Errorf("keep streams: %w", err)
	}
	return &Keeper{
		cfg: cfg, nc: nc, js: api, log: log, wake: make(chan struct{}, 1), needs: needs{by: map[string]int64{}}, cleared: map[string]uint64{}, warned: map[string]bool{},
	}, nil
}

// Run looks at the streams again and again until ctx ends. A backend that is away is looked at when it is back.
func (k *Keeper) Run(ctx context.Context) {
	tick := time.NewTicker(k.cfg.Every)
	defer tick.Stop()
	for {
		if err := k.Look(ctx); err != nil && ctx.Err() == nil && k.nc.IsConnected() {
			k.log.Warn("looking after the backend's streams", "error", err)
		}
		select {
		case <-tick.C:
		case <-k.wake:
		case <-ctx.Done():
			return
		}
	}
}

// needs is the largest message that each JetStream stream could not take, until one goes in.
type needs struct {
	mu sync.Mutex // guards by
	by map[string]int64
}

func (n *needs) note(store string, bytes int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if bytes == 0 {
		delete(n.by, store)
		return
	}
	n.by[store] = max(bytes, n.by[store])
}

func (n *needs) of(store string) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.by[store]
}

// Full lets Run look soon: the JetStream stream could not take a message of so many bytes; 0: now it has. It does not block.
func (k *Keeper) Full(store string, bytes int64) {
	k.needs.note(store, bytes)
	if bytes == 0 {
		return
	}
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Look cuts the shares anew and removes what need not be kept, as far as one look goes.
func (k *Keeper) Look(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	all, err := k.list(ctx)
	if err != nil {
		return err
	}
	if k.cfg.MaxBytes > 0 {
		want := k.holdings(all)
		shares, clipped := k.clip(Shares(k.cfg.MaxBytes, want), want)
		if err := k.cut(ctx, all, shares, clipped); err != nil {
			return err
		}
	}
	now := time.Now()
	before := time.Time{}
	if k.cfg.MaxAge > 0 && !now.Before(k.aging) {
		before = now.Add(-k.cfg.MaxAge)
	}
	left := lanesAtOnce
	k.remember(all)
	for _, s := range all {
		n, err := k.clear(ctx, s, before, left)
		if left -= n; err != nil {
			return err
		}
	}
	if !before.IsZero() && left > 0 {
		k.aging = now.Add(min(k.cfg.MaxAge/100, time.Minute))
	}
	return nil
}

// Held returns what each stream held when it was looked at last, over all its JetStream streams: a few seconds ago. The map is
// the caller's to read.
func (k *Keeper) Held() map[string]Holding {
	if held := k.held.Load(); held != nil {
		return *held
	}
	return nil
}

func (k *Keeper) remember(all []*js.StreamInfo) {
	held := map[string]Holding{}
	for _, s := range all {
		name, _ := streamOf(s.Config.Name)
		h := held[name]
		h.Used, h.Limit = h.Used+int64(s.State.Bytes), h.Limit+max(0, s.Config.MaxBytes)
		held[name] = h
	}
	k.held.Store(&held)
}

// Grant makes room for a stream, spread over so many, that may be new, and returns what each of its JetStream streams may
// hold, 0 for no bound.
func (k *Keeper) Grant(ctx context.Context, stream string, spread int) (maxBytes int64, err error) {
	if k.cfg.MaxBytes == 0 {
		return 0, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	all, err := k.list(ctx)
	if err != nil {
		return 0, fmt.Errorf("make room for %s: %w", stream, err)
	}
	want := k.holdings(all)
	for i := range max(1, spread) {
		name := storeName(stream, i)
		if !slices.ContainsFunc(all, func(s *js.StreamInfo) bool { return s.Config.Name == name }) {
			want = append(want, Holding{DeadLetter: isDeadLetter(name)})
		}
	}
	shares, _ := k.clip(Shares(k.cfg.MaxBytes, want), want)
	if err := k.cut(ctx, all, shares[:len(all)], true); err != nil {
		return 0, fmt.Errorf("make room for %s: %w", stream, err)
	}
	return shares[len(shares)-1], nil
}

// list returns all JetStream streams that hold events.
func (k *Keeper) list(ctx context.Context) (all []*js.StreamInfo, err error) {
	list := k.js.ListStreams(ctx, js.WithStreamListSubject("headgate.>"))
	for info := range list.Info() {
		if strings.HasPrefix(info.Config.Name, "HEADGATE_") {
			all = append(all, info)
		}
	}
	return all, list.Err()
}

func isDeadLetter(name string) bool { return strings.HasSuffix(name, "_DEADLETTER") }

func (k *Keeper) holdings(all []*js.StreamInfo) (out []Holding) {
	for _, s := range all {
		name := s.Config.Name
		out = append(out, Holding{Used: int64(s.State.Bytes), Limit: s.Config.MaxBytes, Need: k.needs.of(name), DeadLetter: isDeadLetter(name)})
	}
	return out
}

// clip bounds what streams may hold by what the disk has left, and reports whether one may hold notably less than before.
func (k *Keeper) clip(shares []int64, all []Holding) (_ []int64, less bool) {
	if k.cfg.Room == nil {
		return shares, false
	}
	room, err := k.cfg.Room()
	if err != nil {
		k.log.Warn("read the free space of the backend's disk", "error", err)
		return shares, false
	}
	for i, h := range all {
		if most := max(1, h.Used+max(0, room)); most < shares[i] {
			shares[i] = most
			less = less || h.Limit-most > most/16
		}
	}
	return shares, less
}

// cut gives each stream its share, if one is to grow notably or together they have too much: first those that get less, so
// that the sum is never more than all.
func (k *Keeper) cut(ctx context.Context, all []*js.StreamInfo, shares []int64, force bool) error {
	sum := int64(0)
	for i, s := range all {
		old := s.Config.MaxBytes
		sum += old
		force = force || old <= 0 || shares[i]-old > old/16
	}
	if !force && sum <= k.cfg.MaxBytes {
		return nil
	}
	for _, growing := range []bool{false, true} {
		for i, s := range all {
			old := s.Config.MaxBytes
			if grows := old > 0 && shares[i] > old; grows != growing || shares[i] == old {
				continue
			}
			s.Config.MaxBytes = shares[i]
			if _, err := k.js.UpdateStream(ctx, s.Config); err != nil {
				return fmt.Errorf("let %s hold %d bytes: %w", s.Config.Name, shares[i], err)
			}
			k.log.Debug("share cut", "stream", s.Config.Name, "from", old, "to", shares[i])
		}
	}
	return nil
}
