package gateway

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward/jetstream"
	"github.com/headgate-io/headgate/gateway/arrange"
	"github.com/headgate-io/headgate/sdk/consume"
)

// ReadRuns reads back the frames that a stream's backend holds. See admin.Events.
func (g *Gateway) ReadRuns(ctx context.Context, q admin.Query, visit func(admin.StoredRun) error) error {
	return g.read(ctx, q, func(m *jetstream.Message) error {
		if m == nil {
			return visit(admin.StoredRun{})
		}
		return visit(admin.StoredRun{Events: m.Events, Payload: m.Payload})
	})
}

// ReadRows reads back events, those of a run at a time.
func (g *Gateway) ReadRows(ctx context.Context, q admin.Query, visit func([]admin.Row) error) error {
	var rows []admin.Row
	return g.read(ctx, q, func(m *jetstream.Message) error {
		if m == nil {
			return visit(nil)
		}
		rows = g.rowsOf(m, q.Number, rows[:0])
		return visit(rows)
	})
}

// rowsOf appends the events of a run with at least the number from.
func (g *Gateway) rowsOf(m *jetstream.Message, from uint64, rows []admin.Row) []admin.Row {
	seen := uint64(0)
	err := consume.Decode(m.Payload, m.ContentEncoding, m.ContentType, func(e consume.Event) error {
		if e.Number == 0 && carriesMeta(m.ContentEncoding) {
			return errors.New("its metadata is damaged")
		}
		if e.Number == 0 { // the message still says where it is from
			e.Number, e.Partition, e.Gateway, e.Time = m.First+seen, uint32(m.Partition), m.Gateway, m.Time.UnixNano()
		}
		if seen++; e.Number >= from {
			rows = append(rows, row(&e))
		}
		return nil
	})
	if err != nil { // named, and passed over: what is behind it stays readable
		g.log.Error("a stored run does not decode", "stream", m.Stream, "run", m.ID, "error", err)
		rows = append(rows, admin.Row{Gateway: m.Gateway, Number: m.First, Partition: m.Partition, Fault: event.Internal, Size: int64(len(m.Payload))})
	}
	return rows
}

// carriesMeta reports whether a coding has a place for a frame's metadata.
func carriesMeta(encoding string) bool { return encoding != "" && encoding != "gzip" }

// row copies what is lent: a frame's buffer is used again before its rows are written.
func row(e *consume.Event) admin.Row {
	return admin.Row{
		Gateway: e.Gateway, Number: e.Number, Partition: int32(e.Partition), Slot: e.Slot, Epoch: e.Epoch,
		HasKey: e.HasKey, Key: slices.Clone(e.Key), ID: slices.Clone(e.ID), Time: e.Time, Attrs: attrs(e.Attrs), Data: slices.Clone(e.Data),
		TraceParent: slices.Clone(e.TraceParent), TraceState: slices.Clone(e.TraceState), RequestID: slices.Clone(e.RequestID),
	}
}

func attrs(lent []consume.Attr) (all []event.Attr) {
	for _, a := range lent {
		all = append(all, event.Attr{Name: slices.Clone(a.Name), Value: slices.Clone(a.Value)})
	}
	return all
}

// read visits the runs asked for; first nil, once the position in the backend is fixed.
func (g *Gateway) read(ctx context.Context, q admin.Query, visit func(*jetstream.Message) error) error {
	s, err := g.readable(ctx, q)
	if err != nil {
		return err
	}
	if s == nil {
		return visit(nil)
	}
	if s.delivery.bus == nil {
		return event.Problemf(event.NotReadable, "stream %s goes to %s, which cannot be read back from here", s.name, s.current.Load().config.Backend)
	}
	if err := s.delivery.bus.canRead(ctx); err != nil {
		return err
	}
	query := jetstream.Query{Stream: q.Stream, Follow: q.Follow}
	if n := s.current.Load().config.Partitions.Max; int(q.Partition) >= n {
		return event.Problemf(event.BadParameter, "stream %s has no partition %d, only 0 to %d", s.name, q.Partition, n-1)
	}
	if q.Partition != admin.AllPartitions {
		query.Partition = &q.Partition
	}
	if q.Now {
		state, err := s.delivery.bus.reader.State(ctx, q.Stream)
		if err != nil {
			return readProblem(err)
		}
		query.After = state.Ends
	}
	if err := visit(nil); err != nil {
		return err
	}
	wanted := func(m *jetstream.Message) error {
		if m.Last != 0 && m.Last < q.Number {
			return nil
		}
		return visit(m)
	}
	r := reading{of: s, idle: q.Idle}
	if s.delivery.bus.spread == 1 || q.Partition != admin.AllPartitions { // they lie in their order
		return readProblem(r.read(ctx, query, func(m jetstream.Message, _ time.Time) error { return wanted(&m) }))
	}
	query.Markers = true
	a := arrange.New(q.Now, wanted)
	if err := r.read(ctx, query, func(m jetstream.Message, now time.Time) error { return a.Add(&m, now) }); err != nil {
		return readProblem(err)
	}
	return a.Rest()
}

// readable returns the stream to read; nil for a dead letter in which there is nothing yet. Who waits for the first
// letter has it made.
func (g *Gateway) readable(ctx context.Context, q admin.Query) (*stream, error) {
	s, err := g.find(q.Stream)
	of, dead := deadLetterOf(q.Stream)
	if err == nil || !dead {
		return s, err
	}
	if _, err := g.find(of); err != nil || !q.Follow {
		return nil, err
	}
	s, err = g.openDeadLetter(ctx, q.Stream)
	return s, asProblem("make the dead letter", err)
}

func readProblem(err error) error {
	if errors.Is(err, jetstream.ErrNoStream) {
		return event.Problemf(event.BackendUnavailable, "the backend has no such stream: %v", err)
	}
	return err
}
