package jetstream

import (
	"context"
	"errors"
	"fmt"

	js "github.com/nats-io/nats.go/jetstream"
)

// PurgeBelow removes what lies below a sequence of a stream that is not spread, but for the last message of each lane, and
// returns how many messages have gone.
func (k *Keeper) PurgeBelow(ctx context.Context, stream string, below uint64) (gone uint64, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, err := k.js.Stream(ctx, storeName(stream, 0))
	if errors.Is(err, js.ErrStreamNotFound) {
		return 0, fmt.Errorf("%s: %w", stream, ErrNoStream)
	}
	if err != nil {
		return 0, fmt.Errorf("purge %s: %w", stream, err)
	}
	share := shelf{k: k, info: s.CachedInfo(), stream: s}
	if _, err = share.clear(ctx, below, int(^uint(0)>>1)); err != nil {
		err = fmt.Errorf("purge %s: %w", stream, err)
	}
	return share.gone, err
}
