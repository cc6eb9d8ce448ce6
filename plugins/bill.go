package plugins

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/sdk/abi"
)

// bill is what one version of a plugin has used and done, in all chains together, since the first of the chains
// that are open now was made.
type bill struct {
	calls        atomic.Int64
	nanoseconds  atomic.Int64 // in calls, without what a guest waited for a seat; else it computes, so this is its CPU time, too
	waited       atomic.Int64 // nanoseconds for seats, in calls
	memory       atomic.Int64 // largest an instance ever was, bytes
	replacements atomic.Int64 // instances made in place of others
	droppedLines atomic.Int64 // log lines over the rate

	kept, replaced, dropped, rejected, failed atomic.Int64 // events

	failures [len(failureNames)]atomic.Int64
	counters [abi.MaxCounters]atomic.Int64 // what the guest counts itself

	poison   poison
	compared comparison // of a version that is tried

	users int // guarded by bills.mu
}

// tally counts the events of a call by what became of them.
type tally struct{ kept, replaced, dropped, rejected, failed int }

func (b *bill) count(t tally) {
	b.kept.Add(int64(t.kept))
	b.replaced.Add(int64(t.replaced))
	b.dropped.Add(int64(t.dropped))
	b.rejected.Add(int64(t.rejected))
	b.failed.Add(int64(t.failed))
}

func (b *bill) called(took time.Duration, memory uint32) {
	b.calls.Add(1)
	b.nanoseconds.Add(int64(took))
	for old := b.memory.Load(); int64(memory) > old; old = b.memory.Load() {
		b.memory.CompareAndSwap(old, int64(memory))
	}
}

// version names a bill: a plugin's name, the start of a digest, and the stage, so that what is tried in one stream takes
// nothing from where it is in force.
type version struct{ plugin, digest, stage string }

// bills holds one bill a version, as long as a chain uses it.
type bills struct {
	mu  sync.Mutex
	all map[version]*bill // guarded by mu

	limit poisonLimit // of each version
}

func (s *bills) open(v version) *bill {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.all[v]
	if b == nil {
		b = &bill{poison: poison{limit: s.limit}}
		s.all[v] = b
	}
	b.users++
	return b
}

func (s *bills) close(v version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[v].users--; s.all[v].users == 0 {
		delete(s.all, v)
	}
}
