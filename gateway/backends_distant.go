package gateway

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/jetstream"
)

// distant is a stream's backend on a server that was away at the start. It is opened by the first call that finds the server
// there; until then every call says that it is away.
type distant struct {
	bus  *bus
	make func(ctx context.Context) (*jetstream.Backend, error)

	opening sync.Mutex
	to      atomic.Pointer[jetstream.Backend]
	why     atomic.Pointer[error] // that it could not be opened, though the server was there
}

func (d *distant) open(ctx context.Context) (*jetstream.Backend, error) {
	if to := d.to.Load(); to != nil {
		return to, nil
	}
	if !d.bus.writer.IsConnected() {
		return nil, &forward.SendError{Code: event.BackendUnavailable, Reason: "disconnected", Err: d.bus.err()}
	}
	d.opening.Lock()
	defer d.opening.Unlock()
	if to := d.to.Load(); to != nil {
		return to, nil
	}
	to, err := d.make(ctx)
	d.why.Store(&err)
	if err != nil {
		return nil, &forward.SendError{Code: event.BackendUnavailable, Reason: "open", Err: err}
	}
	d.to.Store(to)
	return to, nil
}

// Resume implements forward.Backend.
func (d *distant) Resume(ctx context.Context, partition int32) (last uint64, err error) {
	to, err := d.open(ctx)
	if err != nil {
		return 0, err
	}
	return to.Resume(ctx, partition)
}

// Send implements forward.Backend.
func (d *distant) Send(ctx context.Context, run *forward.Run) error {
	to, err := d.open(ctx)
	if err != nil {
		return err
	}
	return to.Send(ctx, run)
}

// Seal implements forward.LaneSealer.
func (d *distant) Seal(ctx context.Context, partition int32, tableVersion uint64) (last uint64, err error) {
	to, err := d.open(ctx)
	if err != nil {
		return 0, err
	}
	return to.Seal(ctx, partition, tableVersion)
}

// check is that of a delivery.
func (d *distant) check(ctx context.Context, partition int32, confirmed uint64) error {
	to, err := d.open(ctx)
	if err != nil {
		return err
	}
	return to.Check(ctx, partition, confirmed)
}

// err says why the stream stands still.
func (d *distant) err() error {
	if to := d.to.Load(); to != nil {
		return to.Err()
	}
	if why := d.why.Load(); why != nil {
		return *why
	}
	return nil
}
