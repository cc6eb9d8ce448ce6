package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/nats-io/nats.go"

	"github.com/headgate-io/headgate/forward/jetstream"
	"github.com/headgate-io/headgate/internal/natsd"
)

const (
	// maxPayload is the largest message of the embedded server, headers included.
	maxPayload = 8 << 20
	// defaultMaxBytes bounds the embedded backend where the disk has room.
	defaultMaxBytes = 10 << 30
)

// stores are the two embedded servers: one for events, one for control, so that neither can fill up the other.
type stores struct {
	events   *natsd.Server
	writer   *nats.Conn
	reader   *jetstream.Reader // on a connection of its own, so that publishing does not wait behind reading
	readConn *nats.Conn
	maxBytes int64 // of all streams of events together
	control  *controlStore
}

func openStores(ctx context.Context, f *folder, cfg Config, log *slog.Logger) (s *stores, err error) {
	s = &stores{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.maxBytes, err = eventBytes(f, cfg); err != nil {
		return s, err
	}
	// The server counts reservations, of which each stream makes one: room for all of them and the server's own.
	s.events, err = natsd.Start(ctx, natsd.Config{
		Name: "headgate-" + f.id, Dir: f.file("jetstream"), MaxStore: s.maxBytes + s.maxBytes/16 + maxStreams*deadLetterBytes(s.maxBytes), MaxPayload: maxPayload,
	}, log)
	if err != nil {
		return s, err
	}
	if s.control, err = openControl(ctx, f, log); err != nil {
		return s, fmt.Errorf("open control store: %w", err)
	}
	if s.writer, err = s.events.Connect("forward"); err != nil {
		return s, err
	}
	if s.readConn, err = s.events.Connect("read"); err != nil {
		return s, err
	}
	s.reader, err = jetstream.NewReader(s.readConn)
	return s, err
}

// eventBytes returns how much the embedded backend may hold: as configured, else 10 GiB or half of what is free.
func eventBytes(f *folder, cfg Config) (int64, error) {
	if local := cfg.Backends[LocalBackend].JetStream; local != nil && local.MaxBytes > 0 {
		return int64(local.MaxBytes), nil
	}
	free, err := freeBytes(f.path)
	if err != nil {
		return 0, fmt.Errorf("read free space of %s: %w", filepath.Clean(f.path), err)
	}
	return min(defaultMaxBytes, free/2), nil
}

func (s *stores) close() {
	for _, c := range []*nats.Conn{s.writer, s.readConn} {
		if c != nil {
			c.Close()
		}
	}
	if s.events != nil {
		s.events.Close()
	}
	if s.control != nil {
		s.control.close()
	}
}
