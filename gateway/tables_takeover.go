package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/headgate-io/headgate/partitioner"
)

// unnamed returns what a lane was told to follow and no frame of it says yet.
func (a *adaptive) unnamed(partition int32) (all []partitioner.Predecessor) {
	for _, m := range a.stream.forwarder.Unnamed(partition) {
		all = append(all, partitioner.Predecessor{From: int32(m.Partition), To: partition, Gateway: m.Gateway, Number: m.Number})
	}
	return all
}

// allUnnamed is that of all lanes.
func (a *adaptive) allUnnamed(t *partitioner.Table) (all []partitioner.Predecessor) {
	for p := range t.Partitions() {
		all = append(all, a.unnamed(int32(p))...)
	}
	return all
}

// roomToFollow tells whether what a table begins leaves no more for frames to name than a table remembers. Lanes without events
// name nothing: with very many partitions, most of them idle, that may add up.
func (a *adaptive) roomToFollow(begun *partitioner.Table) bool {
	n := partitioner.Needs(begun, a.allUnnamed(begun))
	crowded := n > partitioner.MaxPredecessors
	if crowded && !a.crowded {
		a.note(begun, fmt.Sprintf("too_many_predecessors: %d of at most %d; partitions that get no events would have to follow too many others", n, partitioner.MaxPredecessors))
	}
	a.crowded = crowded
	return !crowded
}

// overtakenError says that another table is stored than the one that was read or written last: somebody else changed it, or a
// write of ours came late, of which nothing was known but that it had failed.
type overtakenError struct {
	table *partitioner.Table
	err   error
}

// Error is that of the write.
func (e *overtakenError) Error() string { return e.err.Error() }

// Unwrap returns it.
func (e *overtakenError) Unwrap() error { return e.err }

// overtaking returns the table that a failed write has found stored, nil when it is no newer than version, or there is none.
func overtaking(err error, version uint64) *partitioner.Table {
	if o, ok := errors.AsType[*overtakenError](err); ok && o.table.Version() > version {
		return o.table
	}
	return nil
}

// takeOver puts a table in force that was found stored. What it has begun is ended, as after a start.
func (a *adaptive) takeOver(ctx context.Context, t *partitioner.Table) {
	a.log.Warn("the control store has a newer routing table than the one in force, which it replaces", "version", t.Version(), "in_force", a.stream.partitioner.Table().Version())
	a.follow(t.Predecessors())
	a.stream.partitioner.Swap(t)
	if t.UnderWay() {
		a.fence(ctx, t, nil)
	}
}
