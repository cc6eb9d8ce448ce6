package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/internal/failpoint"
	"github.com/headgate-io/headgate/partitioner"
	"github.com/headgate-io/headgate/sdk/wire"
)

// tickTime is how often it is looked whether a stream's table should change.
const tickTime = 100 * time.Millisecond

// adaptive changes the table of a stream as its load asks for: it measures, has a planner decide, and carries out what
// that wants. One goroutine runs it; the others read figures and history.
type adaptive struct {
	stream  *stream
	gateway string
	log     *slog.Logger
	meter   *partitioner.Meter
	planner *partitioner.Planner
	planned partitioner.Settings // what the planner aims at
	stored  *storedTable
	crowded bool // it was said that lanes have too much to follow
	unsaved bool // the table in force is newer than the stored one; only where nothing has an order
	lanes   laneLoads
	full    saturation
	rates   rateMetrics // of keys
	last    time.Time   // of the last tick

	figures atomic.Pointer[figures]
	names   keyNames
	history history
	counts  changeCounts
	turn    turn         // who changes the table
	parked  atomic.Int64 // events that wait for the end of what is under way
	stalls  stalls       // how long such events waited
}

// newAdaptive returns what runs the table of a stream.
func (g *Gateway) newAdaptive(s *stream, stored *storedTable, m *partitioner.Meter) *adaptive {
	a := &adaptive{
		stream: s, gateway: g.folder.ID, log: g.log.With("stream", s.name), meter: m, stored: stored, turn: newTurn(), rates: g.rates,
		names: keyNames{known: map[[2]uint64]partitioner.Named{}},
	}
	a.figures.Store(&figures{})
	return a
}

// follow has the lanes name, in their next frames, what the table remembers as their predecessors: an earlier process may
// have ended before it sealed a frame that does.
func (a *adaptive) follow(marks []partitioner.Predecessor) {
	for _, m := range marks {
		a.stream.forwarder.Follow(m.To, wire.Predecessor{Partition: uint32(m.From), Gateway: m.Gateway, Number: m.Number})
	}
}

// run looks after the table until ctx ends. What is under way then is ended after the next start.
func (a *adaptive) run(ctx context.Context) {
	a.sayFence()
	a.turn.Lock()
	if t := a.stream.partitioner.Table(); t.UnderWay() { // since an earlier process
		a.fence(ctx, t, nil)
	}
	a.turn.Unlock()
	tick := time.NewTicker(tickTime)
	defer tick.Stop()
	for a.last = time.Now(); ; {
		select {
		case now := <-tick.C:
			a.tick(ctx, now)
		case <-ctx.Done():
			return
		}
	}
}

// tick measures, plans, and carries out.
func (a *adaptive) tick(ctx context.Context, now time.Time) {
	elapsed := now.Sub(a.last)
	if elapsed <= 0 {
		return
	}
	a.last = now
	a.turn.Lock()
	defer a.turn.Unlock()
	table := a.redefined(ctx)
	r := a.meter.Read(table, partitioner.Tick{Elapsed: elapsed, Share: heavyShare / float64(len(table.Partitions())), Hold: a.planned.Hold})
	a.observe(table, &r)
	if !a.mayPlan() {
		a.unlimit()
		return
	}
	if r.Idle && !a.unsaved && a.planner.Settled(table) {
		return
	}
	r.Load.Elapsed = elapsed
	a.lanes.read(a.stream.forwarder, elapsed, &r.Load, len(table.Partitions()))
	a.full.read(&a.lanes, &r, elapsed)
	a.stream.limits.Load().refusals(&r.Load)
	plan := a.planner.Next(table, r.Load, sinceEpoch(now))
	a.limit(table, plan.Limits)
	for _, note := range plan.Notes {
		a.note(table, note)
	}
	switch {
	case len(plan.Changes) == 0 && plan.Ledger == nil && !a.unsaved:
	case a.planned.Ordering == partitioner.Unordered && !table.Classed():
		a.change(ctx, table, plan)
	default:
		a.begin(ctx, table, plan)
	}
}

// heavyShare is from which part of a partition's share on a key is looked at by itself.
const heavyShare = 0.05

func sinceEpoch(t time.Time) time.Duration { return time.Duration(t.UnixNano()) }

// redefined takes over what the stream's definition says now, and returns the table in force.
func (a *adaptive) redefined(ctx context.Context) *partitioner.Table {
	table, want := a.stream.partitioner.Table(), a.stream.current.Load().config.Planner()
	if a.planner != nil && want == a.planned {
		return table
	}
	a.planner, a.planned = partitioner.NewPlanner(want), want
	a.stream.limits.Store(nil) // of which the new one knows nothing
	if want.Ordering != partitioner.Unordered {
		return table
	}
	if loose := table.Loosen(); loose != table {
		a.put(ctx, loose)
	}
	return a.stream.partitioner.Table()
}

// mayPlan tells whether the table may change by itself. Without metadata readers could not restore an order.
func (a *adaptive) mayPlan() bool {
	cfg := &a.stream.current.Load().config
	return !cfg.Adaptive.Off && (cfg.Ordering == "none" && !a.stream.partitioner.Table().Classed() || cfg.Codec != "gzip" && cfg.Codec != "none")
}

// change puts a plan in force of a stream that orders nothing. It needs nobody: with the control store down the table is
// stored later.
func (a *adaptive) change(ctx context.Context, table *partitioner.Table, plan partitioner.Plan) {
	next, err := table.Apply(plan)
	if err == nil && next.UnderWay() {
		next, err = next.Commit(next.Moving()...)
	}
	if err != nil {
		a.log.Error("BUG: the planner wants what the table refuses", "plan", plan.String(), "error", err)
		return
	}
	a.put(ctx, next)
	a.record(next, plan.Changes, done)
}

// storeTime bounds a write of the control store: an unordered stream does not wait longer for it.
const storeTime = 2 * time.Second

// put stores a table and puts it in force, also when it can't be stored.
func (a *adaptive) put(ctx context.Context, t *partitioner.Table) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	err := a.stored.write(ctx, t)
	if err != nil && !a.unsaved {
		a.log.Warn("the routing table can't be stored: it is in force, and is stored later", "error", err)
	}
	if newer := overtaking(err, t.Version()-1); newer != nil && !newer.UnderWay() {
		t, err = newer, nil
	}
	a.unsaved = err != nil
	a.stream.partitioner.Swap(t)
}

// begin carries out a plan of a stream that orders its events.
func (a *adaptive) begin(ctx context.Context, table *partitioner.Table, plan partitioner.Plan) {
	begun, err := table.Begin(plan)
	if err != nil {
		a.log.Error("BUG: the planner wants what the table refuses", "plan", plan.String(), "error", err)
		return
	}
	if !a.roomToFollow(begun) {
		return
	}
	if err := a.stored.write(ctx, begun); err != nil {
		a.log.Warn("the routing table can't be stored: nothing changes", "error", err)
		if newer := overtaking(err, table.Version()); newer != nil {
			a.takeOver(ctx, newer)
		}
		return
	}
	failpoint.Pass(failpoint.FenceBegun)
	a.unsaved = false
	a.stream.partitioner.Swap(begun)
	if !begun.UnderWay() {
		a.record(begun, plan.Changes, done)
		return
	}
	a.fence(ctx, begun, plan.Changes)
}

// fence ends what a table has begun, which is stored and in force; changes are those that it is about, as far as they are
// known. It returns early only when ctx ends.
func (a *adaptive) fence(ctx context.Context, begun *partitioner.Table, changes []partitioner.Change) {
	began := time.Now()
	failpoint.Pass(failpoint.FenceParking)
	f := partitioner.NewFence(a.gateway, begun, sinceEpoch(began))
	a.seal(ctx, f)
	f.Unnamed(a.allUnnamed(begun))
	step := f.Next(sinceEpoch(began) + time.Since(began))
	if ctx.Err() != nil || step == partitioner.Wait {
		return
	}
	end, err := f.End(step)
	if err != nil {
		panic(fmt.Sprintf("BUG: gateway: what was begun can't be ended: %v", err))
	}
	failpoint.Pass(failpoint.FenceCommit)
	stored := a.insist(ctx, end)
	if stored == nil {
		return
	}
	if stored != end {
		a.record(stored, changes, abandoned)
		a.takeOver(ctx, stored)
		return
	}
	failpoint.Pass(failpoint.FenceCommitted)
	if step == partitioner.Finish {
		a.follow(f.Marks())
	}
	failpoint.Pass(failpoint.FenceFollowed)
	a.stream.partitioner.Swap(end)
	a.counts.fences.Add(1)
	a.counts.fenceTime.Add(int64(time.Since(began)))
	if step == partitioner.Finish {
		a.record(end, changes, done)
	} else {
		a.record(end, changes, abandoned)
	}
}

// seal has the lanes sealed that are left, until they are or the time for it is over.
func (a *adaptive) seal(ctx context.Context, f *partitioner.Fence) {
	ctx, cancel := context.WithTimeout(ctx, partitioner.FenceTime) // not until a time of day, which may be set back
	defer cancel()
	type sealed struct {
		partition int32
		last      uint64
		err       error
	}
	leaves := f.Leaves()
	results := make(chan sealed, len(leaves))
	for _, p := range leaves {
		f.Inherits(p, a.unnamed(p))
		go func() {
			last, err := a.stream.forwarder.Seal(ctx, p, f.Version())
			results <- sealed{p, last, err}
		}()
	}
	for range leaves {
		if r := <-results; r.err == nil {
			f.Sealed(r.partition, r.last)
		} else {
			f.Failed()
		}
	}
}

// insistEvery is the pause between tries to store the end of what is under way.
const insistEvery = 200 * time.Millisecond

// insist stores the table that ends what is under way, however long it takes, and returns the one that is stored then: another one
// when somebody else has ended it. It returns nil when ctx ended first.
func (a *adaptive) insist(ctx context.Context, end *partitioner.Table) *partitioner.Table {
	for failures := 0; ; failures++ {
		err := a.stored.write(ctx, end)
		if err == nil {
			return end
		}
		if newer := overtaking(err, end.Version()-1); newer != nil {
			return newer
		}
		if failures == 0 {
			a.log.Error("the routing table can't be stored: what is between two partitions waits", "error", err)
		}
		select {
		case <-time.After(insistEvery):
		case <-ctx.Done():
			return nil
		}
	}
}
