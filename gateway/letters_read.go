package gateway

import (
	"context"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward/jetstream"
)

// ReadLetters reads a dead letter. See admin.Letters.
func (g *Gateway) ReadLetters(ctx context.Context, q admin.LetterQuery, visit func([]admin.Letter) error) error {
	if err := g.hasLetters(q.Stream); err != nil {
		return err
	}
	book, err := g.openBook(ctx, q.Stream)
	if err != nil {
		return err
	}
	in := q.Query
	in.Stream += event.DeadLetterSuffix
	var rows []admin.Row
	var list []admin.Letter
	return g.read(ctx, in, func(m *jetstream.Message) error {
		if m == nil {
			return visit(nil)
		}
		rows, list = g.rowsOf(m, q.Number, rows[:0]), list[:0]
		for i := range rows {
			l := admin.Letter{Row: rows[i], Stored: m.Time.UnixNano(), Settled: book.Has(rows[i].Gateway, rows[i].Number)}
			if (q.Settled || !l.Settled) && q.Filter.Takes(&l) {
				list = append(list, l)
			}
		}
		if len(list) == 0 {
			return nil
		}
		return visit(list)
	})
}

// hasLetters returns nil when a stream can have letters: it is there, or its dead letter is.
func (g *Gateway) hasLetters(stream string) error {
	if _, dead := (*g.streams.Load())[stream+event.DeadLetterSuffix]; dead {
		return nil
	}
	_, err := g.find(stream)
	return err
}

// openLetters calls visit with the letters that order means, in order, together with the place of their run; nothing of
// what comes in meanwhile is among them.
func (g *Gateway) openLetters(ctx context.Context, stream string, book *letterBook, o *admin.LetterOrder, visit func(seq uint64, l *admin.Letter) error) error {
	q := admin.Query{Stream: stream + event.DeadLetterSuffix, Partition: admin.AllPartitions}
	var rows []admin.Row
	left := o.Limit
	return g.read(ctx, q, func(m *jetstream.Message) error {
		if m == nil {
			return nil
		}
		rows = g.rowsOf(m, 0, rows[:0])
		for i := range rows {
			l := admin.Letter{Row: rows[i], Stored: m.Time.UnixNano()}
			if book.Has(l.Gateway, l.Number) || !o.Filter.Takes(&l) {
				continue
			}
			if err := visit(m.Seq, &l); err != nil {
				return err
			}
			if left--; left == 0 {
				return jetstream.Stop
			}
		}
		return nil
	})
}

// sweepLetters removes the runs in front of a dead letter in which nothing is open, but for the last one. What fails is left
// for the next time.
func (g *Gateway) sweepLetters(ctx context.Context, stream string, book *letterBook) {
	dead, ok := (*g.streams.Load())[stream+event.DeadLetterSuffix]
	if !ok || dead.delivery.bus == nil {
		return
	}
	below, first := uint64(0), map[string]uint64{}
	q := admin.Query{Stream: dead.name, Partition: admin.AllPartitions}
	err := g.read(ctx, q, func(m *jetstream.Message) error {
		if m == nil {
			return nil
		}
		if _, known := first[m.Gateway]; !known {
			first[m.Gateway] = m.First
		}
		for n := m.First; n <= m.Last; n++ {
			if !book.Has(m.Gateway, n) {
				below = m.Seq
				return jetstream.Stop
			}
		}
		below = m.Seq + 1
		return nil
	})
	if err == nil && below > 0 {
		_, err = dead.delivery.bus.keeper.PurgeBelow(ctx, dead.name, below)
	}
	for gateway, number := range first {
		book.Forget(gateway, number)
	}
	if err == nil {
		err = book.save(ctx)
	}
	if err != nil && ctx.Err() == nil {
		g.log.Warn("settled letters are still stored: they go at the next replay or purge", "stream", stream, "error", err)
	}
}
