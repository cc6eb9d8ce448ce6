package gateway

import (
	"context"
	"sync"

	"github.com/headgate-io/headgate/event"
)

// replays are the replays and purges of letters that run, one a stream.
type replays struct {
	mu      sync.Mutex // guards running and closed
	running map[string]*replayTurn
	late    map[string]*handOver // by stream: a hand-over whose outcome came too late for its replay
	closed  bool
	all     sync.WaitGroup
}

// replayTurn is the right to change what is settled of a stream's letters.
type replayTurn struct {
	of     *replays
	stream string
	cancel context.CancelFunc
}

// begin gives the turn until end; the context ends with ctx, and when the gateway stops.
func (r *replays) begin(ctx context.Context, stream string) (*replayTurn, context.Context, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, event.Problemf(event.Draining, "the gateway is stopping; ask again when it is back")
	}
	if r.running[stream] != nil {
		return nil, nil, event.Problemf(event.ReplayRunning, "letters of stream %s are being replayed or purged already; ask again when that is done", stream)
	}
	if r.running == nil {
		r.running, r.late = map[string]*replayTurn{}, map[string]*handOver{}
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &replayTurn{of: r, stream: stream, cancel: cancel}
	r.running[stream] = t
	r.all.Add(1)
	return t, ctx, nil
}

func (t *replayTurn) end() {
	t.cancel()
	t.of.mu.Lock()
	delete(t.of.running, t.stream)
	t.of.mu.Unlock()
	t.of.all.Done()
}

// leave keeps a hand-over whose outcome is not known yet for who comes next.
func (t *replayTurn) leave(h *handOver) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.of.late[t.stream] = h
}

// left returns what leave has kept, nil for nothing: then an earlier process handed over.
func (t *replayTurn) left() *handOver {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	h := t.of.late[t.stream]
	delete(t.of.late, t.stream)
	return h
}

// close ends what runs, and waits for it: each hands no more over, and notes what it did.
func (r *replays) close() {
	r.mu.Lock()
	r.closed = true
	for _, t := range r.running {
		t.cancel()
	}
	r.mu.Unlock()
	r.all.Wait()
}
