package forward

import (
	"context"
	"slices"

	"github.com/headgate-io/headgate/internal/failpoint"
	"github.com/headgate-io/headgate/sdk/wire"
)

// LaneSealer is a Backend that can write down, where the lane's events are, that a lane was sealed: what an older table routed
// must not come behind it. The lane's sender calls it, so that it is never called beside Send of the same partition.
type LaneSealer interface {
	// Seal writes the marker behind what the lane has stored, unless it is there already, and returns the number of
	// the last event stored, 0 for none. Every error means "try again".
	Seal(ctx context.Context, partition int32, tableVersion uint64) (last uint64, err error)
}

// laneSeal is a lane on its way to be sealed: everything that it held when it began has to be confirmed, or given up.
type laneSeal struct {
	version uint64 // of the table that wants it
	mark    uint64 // events that the lane had taken by then
	done    chan uint64
	quit    <-chan struct{} // closed when nobody waits any more
}

// Seal closes a partition's lane for what tables older than version route, and returns once all that it held is
// confirmed, with the number of the last event that the backend has of it, 0 when it has none or that is not known. The
// error is that of ctx, which ended first. One Seal of a partition is made at a time.
func (f *Forwarder) Seal(ctx context.Context, partition int32, version uint64) (last uint64, err error) {
	l := f.lanes[partition]
	s := &laneSeal{version: version, done: make(chan uint64, 1), quit: ctx.Done()}
	l.beginLaneSeal(s)
	select {
	case last = <-s.done:
		return last, nil
	case <-ctx.Done():
		l.endLaneSeal(s)
		return 0, ctx.Err()
	}
}

// beginLaneSeal raises the lane's version and marks where it is.
func (l *lane) beginLaneSeal(s *laneSeal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.minVersion = max(l.minVersion, s.version)
	if l.open != nil {
		l.cut()
	}
	s.mark = l.counts.accepted
	l.laneSeal = s
	wake(l.sealer)
	wake(l.sender)
}

func (l *lane) endLaneSeal(s *laneSeal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.laneSeal == s {
		l.laneSeal = nil
	}
}

// laneSealReached tells that everything is confirmed or given up that had to be; l.mu is held.
func (l *lane) laneSealReached() bool {
	c := &l.counts
	return l.laneSeal != nil && c.delivered+c.refused+c.abandoned+c.lost >= l.laneSeal.mark
}

// writeLaneSeal ends a seal that was reached; it reports false when ctx ended first.
func (l *lane) writeLaneSeal(ctx context.Context) bool {
	l.mu.Lock()
	s, last := l.laneSeal, l.stored
	l.mu.Unlock()
	if s == nil {
		return true
	}
	if b, ok := l.f.backend.(LaneSealer); ok {
		err := l.retry(ctx, "seal", l.limited(func(ctx context.Context) (err error) {
			select {
			case <-s.quit:
				return nil
			default:
			}
			return l.alone(ctx, func() (err error) {
				last, err = b.Seal(ctx, l.partition, s.version)
				return err
			})
		}))
		if err != nil {
			return false
		}
	}
	failpoint.Pass(failpoint.FenceSealed)
	l.endLaneSeal(s)
	s.done <- last
	return true
}

// Follow has the next frames of a partition's lane name these frames as predecessors, until one that does is stored: a power
// cut may take the first one and leave the second, and the backend may refuse it.
func (f *Forwarder) Follow(partition int32, after ...wire.Predecessor) {
	l := f.lanes[partition]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.after, l.told = append(l.after, after...), l.told+len(after)
	if l.open == nil && len(l.queue) == 0 && !l.spilled.some() { // no frame names a part of them: of a lane the last one says all
		l.after = newest(l.after)
	}
	if l.open != nil {
		l.cut()
		wake(l.sealer)
	}
}

// newest keeps of each lane the last predecessor: a lane that gets no events may be told again and again.
func newest(all []wire.Predecessor) []wire.Predecessor {
	kept := all[:0]
	for _, m := range all {
		i := slices.IndexFunc(kept, func(o wire.Predecessor) bool { return o.Partition == m.Partition && o.Gateway == m.Gateway })
		if i < 0 {
			kept = append(kept, m)
		} else {
			kept[i].Number = max(kept[i].Number, m.Number)
		}
	}
	return kept
}

// named notes that a frame is stored with the predecessors that it names; l.mu is held.
func (l *lane) named(fr *frame) {
	if n := len(l.after) - (l.told - fr.names); n > 0 {
		l.after = append(l.after[:0], l.after[n:]...)
	}
}

// Unnamed returns the predecessors that a partition's lane was told to name and no frame of it that is stored names yet.
func (f *Forwarder) Unnamed(partition int32) []wire.Predecessor {
	l := f.lanes[partition]
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.after)
}
