package plugins

import (
	"context"
	"fmt"
	"os"
	"sync"
)

// turns lets one at a time work on the compiled form of a module, while others load or compile other modules.
type turns struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // guarded by mu: by digest, closed when it is free again
}

// take waits for the turn of a digest until ctx ends; done gives it back.
func (t *turns) take(ctx context.Context, digest string) (done func(), err error) {
	for {
		t.mu.Lock()
		free := t.busy[digest]
		if free == nil {
			free = make(chan struct{})
			if t.busy == nil {
				t.busy = map[string]chan struct{}{}
			}
			t.busy[digest] = free
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				delete(t.busy, digest)
				t.mu.Unlock()
				close(free)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// claim waits until the module may be compiled, or at once loaded where its compiled form is kept: what is activated or gone
// back to does not wait for what somebody else uploads.
func (h *Host) claim(ctx context.Context, digest string) (done func(), err error) {
	release, err := h.turns.take(ctx, digest)
	if err != nil {
		return nil, fmt.Errorf("wait for the same module to be compiled: %w", err)
	}
	if _, err := os.Stat(h.folderOf(digest).sumFile()); h.cfg.CacheDir != "" && err == nil {
		return release, nil // when it turns out to be damaged, one more than usual is compiled at a time
	}
	select {
	case h.compile <- struct{}{}:
		return func() { <-h.compile; release() }, nil
	case <-ctx.Done():
		release()
		return nil, fmt.Errorf("wait for another module to be compiled: %w", ctx.Err())
	}
}
