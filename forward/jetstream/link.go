package jetstream

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// Link tells who waits for an answer that the connection was lost, and the answer with it.
type Link struct {
	now atomic.Pointer[linkContext] // ends with the connection that is
}

type linkContext struct {
	context.Context
	cancel context.CancelFunc
}

// NewLink watches over a connection, for as long as there is one, and calls back each time that it is there again. Handlers that
// it has already are called as before.
func NewLink(nc *nats.Conn, back func()) *Link {
	l := &Link{}
	l.renew()
	before := nc.Opts.DisconnectedErrCB
	nc.SetDisconnectErrHandler(func(nc *nats.Conn, err error) {
		l.renew()
		if before != nil {
			before(nc, err)
		}
	})
	again := nc.Opts.ReconnectedCB
	nc.SetReconnectHandler(func(nc *nats.Conn) {
		if again != nil {
			again(nc)
		}
		back()
	})
	return l
}

func (l *Link) renew() {
	ctx, cancel := context.WithCancel(context.Background())
	if old := l.now.Swap(&linkContext{ctx, cancel}); old != nil {
		old.cancel()
	}
}

// bound returns a context that ends with the connection too; done turns the error of a call that ended so into what it is.
func (l *Link) bound(ctx context.Context) (_ context.Context, done func(error) error) {
	if l == nil {
		return ctx, func(err error) error { return err }
	}
	now := l.now.Load()
	bound, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(now, cancel)
	return bound, func(err error) error {
		stop()
		cancel()
		if err != nil && ctx.Err() == nil && now.Err() != nil && errors.Is(err, context.Canceled) {
			return nats.ErrDisconnected
		}
		return err
	}
}
