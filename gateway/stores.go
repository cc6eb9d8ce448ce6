package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"

	"github.com/nats-io/nats.go"

	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/gateway/datafolder"
	"github.com/headgate-io/headgate/internal/natsd"
	"github.com/headgate-io/headgate/internal/settings"
)

const (
	// defaultMaxBytes bounds the embedded backend where the disk has room.
	defaultMaxBytes = 10 << 30
	// leastDefault is what embedded backend and spool may hold when a start finds the disk full: it will have room again, and
	// until then what is left of it is the bound.
	leastDefault = 64 << 20
)

// stores are the two embedded servers, one for events and one for control, so that neither can fill up the other, and
// the connections to the servers of other backends.
type stores struct {
	events  *natsd.Server
	control *controlStore
	aside   string          // folder of what is damaged
	note    string          // what an operator should know about how the events were opened
	buses   map[string]*bus // by backend, the embedded one among them
}

func openStores(ctx context.Context, f *datafolder.Folder, cfg config.Config, log *slog.Logger) (s *stores, err error) {
	s = &stores{aside: f.File("jetstream.damaged")}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.control, err = openControl(ctx, f, log); err != nil {
		return s, fmt.Errorf("open control store: %w", err)
	}
	if s.buses, err = dialBuses(ctx, f, cfg, log); err != nil {
		return s, err
	}
	return s, s.openLocal(ctx, f, cfg, log)
}

// openLocal starts the embedded backend.
func (s *stores) openLocal(ctx context.Context, f *datafolder.Folder, cfg config.Config, log *slog.Logger) error {
	local := config.JetStream{Embedded: true}
	if c := cfg.Backends[config.LocalBackend].JetStream; c != nil {
		local = *c
	}
	maxBytes, err := eventBytes(f, local)
	if err != nil {
		return err
	}
	local.MaxBytes = settings.Bytes(maxBytes)
	// The keeper holds the limits of all streams together below max_bytes. The server's own bound would only stop it from
	// lowering them, stream by stream, once max_bytes is less than before.
	err = s.startEvents(ctx, f, natsd.Config{
		Name: "headgate-" + f.ID, Dir: f.File("jetstream"), MaxStore: math.MaxInt64 / 2, MaxPayload: config.MaxPayload,
		Aside: s.aside, PutBack: true, Free: f.Free, Need: f.Reserve / 2,
	}, log)
	if err != nil {
		return err
	}
	var conns []*nats.Conn
	for _, name := range []string{"forward", "read"} {
		nc, err := s.events.Connect(name)
		if err != nil {
			return err
		}
		conns = append(conns, nc)
	}
	s.buses[config.LocalBackend] = &bus{name: config.LocalBackend, where: "embedded", damage: s.events.EverDamaged()}
	s.buses[config.LocalBackend].room, s.buses[config.LocalBackend].fault = f.Room, s.events.Fault
	return s.buses[config.LocalBackend].complete(&local, conns, log)
}

// eventBytes returns how much the embedded backend may hold: as configured, else 10 GiB or half of what is free or its own.
func eventBytes(f *datafolder.Folder, local config.JetStream) (int64, error) {
	if local.MaxBytes > 0 {
		return int64(local.MaxBytes), nil
	}
	free, err := datafolder.FreeBytes(f.Path)
	if err != nil {
		return 0, fmt.Errorf("read free space of %s: %w", filepath.Clean(f.Path), err)
	}
	own, err := datafolder.BytesIn(f.File("jetstream"))
	if err != nil {
		return 0, err
	}
	return min(defaultMaxBytes, max(leastDefault, (free+own)/2)), nil
}

// servers returns the embedded servers.
func (s *stores) servers() []*natsd.Server { return []*natsd.Server{s.events, s.control.server} }

func (s *stores) close() {
	closeBuses(s.buses)
	if s.events != nil {
		s.events.Close()
	}
	if s.control != nil {
		s.control.close()
	}
}
