package gateway

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headgate-io/headgate/event"
)

// readPatience is how long a read waits for the readers' connection while the writer's is there already: longer than the pause
// between two attempts to connect again and an attempt together.
const readPatience = 10 * time.Second

// canRead returns nil once the readers' connection is there. When the server is away it says so at once.
func (b *bus) canRead(ctx context.Context) error {
	if b.readConn.IsConnected() {
		return nil
	}
	changed := b.readConn.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer b.readConn.RemoveStatusListener(changed)
	away := func() error {
		return event.Problemf(event.BackendUnavailable, "no connection to backend %s (%s) to read from; try again when it is back", b.name, b.where)
	}
	if b.readConn.IsConnected() {
		return nil
	}
	if b.readConn.IsClosed() || !b.writer.IsConnected() {
		return away()
	}
	patience := time.NewTimer(readPatience)
	defer patience.Stop()
	select {
	case state := <-changed:
		if state == nats.CONNECTED {
			return nil
		}
	case <-patience.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return away()
}
