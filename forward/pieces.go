package forward

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/headgate-io/headgate/sdk/wire"
)

// deliverPieces delivers a frame that was refused as a whole; it reports false when ctx ended first.
func (l *lane) deliverPieces(ctx context.Context, fr *frame, why *SendError) bool {
	p := takeApart(fr)
	refused, err := l.deliverPiece(ctx, p, piece{to: fr.events, why: why}, nil)
	if err != nil {
		return false
	}
	l.finish(1, refused)
	return true
}

// piece is the events from one place in a frame up to before another, and why they were refused together.
type piece struct {
	from, to int
	why      *SendError
}

// deliverPiece sends the two halves of a piece that was refused, and so on down to single events. It appends those
// that were refused alone. What an earlier process was done with is passed over, by the same cuts: the piece that it sent
// last comes again under its id. The spool learns of each piece, so that a restart does not bury an event again.
func (l *lane) deliverPiece(ctx context.Context, p *pieces, c piece, refused []refusal) ([]refusal, error) {
	if c.to-c.from == 1 {
		lost, err := l.giveUp(ctx, p, c.from, c.why)
		if err == nil {
			l.advance(p.fr.first + uint64(c.from))
		}
		return append(refused, lost), err
	}
	middle := c.from + (c.to-c.from)/2
	for _, half := range []piece{{from: c.from, to: middle}, {from: middle, to: c.to}} {
		if half.to <= p.fr.delivered {
			continue
		}
		if half.from < p.fr.delivered {
			var err error
			if refused, err = l.deliverPiece(ctx, p, half, refused); err != nil {
				return nil, err
			}
			continue
		}
		run := l.run(p.fr, p.fr.first+uint64(half.from), p.fr.first+uint64(half.to)-1)
		run.ID, run.Payload = wire.PieceID(l.frameID(run.First), run.Last), p.encode(half.from, half.to)
		why, err := l.send(ctx, run)
		switch {
		case err == nil && why != nil:
			half.why = why
			refused, err = l.deliverPiece(ctx, p, half, refused)
		case err == nil:
			l.advance(run.Last)
		}
		if err != nil {
			return nil, err
		}
	}
	return refused, nil
}

// advance tells the spool that everything up to an event, in the middle of a frame maybe, is delivered or given up.
func (l *lane) advance(last uint64) {
	if l.f.spool != nil {
		l.f.spool.Advance(l.partition, last, 0)
	}
}

// pieces is a sealed frame taken apart, so that its events can be sent in smaller frames.
type pieces struct {
	fr    *frame
	block bool      // the codec's frames carry metadata
	meta  wire.Meta // of the whole frame
	raw   []byte    // its events before compression
	ends  []int     // where each of them ends
}

// takeApart decodes a frame. It was sealed by this process, so that nothing can be wrong with it.
func takeApart(fr *frame) *pieces {
	p := &pieces{fr: fr}
	if err := p.decode(); err != nil {
		panic(fmt.Sprintf("BUG: forward: a sealed frame can't be read: %v", err))
	}
	return p
}

func (p *pieces) decode() error {
	block, data, _, err := wire.SplitFrame(p.fr.payload.b, p.fr.codec.Name())
	if err != nil {
		return err
	}
	if p.raw, err = p.fr.codec.AppendDecoded(nil, data, math.MaxInt); err != nil {
		return err
	}
	for rest := p.raw; len(rest) > 0; {
		if _, rest, err = wire.NextEvent(rest, p.fr.framing); err != nil {
			return err
		}
		p.ends = append(p.ends, len(p.raw)-len(rest))
	}
	if len(p.ends) != p.fr.events {
		return fmt.Errorf("%d events of %d", len(p.ends), p.fr.events)
	}
	if p.block = block != nil; !p.block {
		return nil
	}
	if err := wire.ParseMeta(block, &p.meta); err != nil {
		return err
	}
	return p.meta.ResolveKeys(p.raw)
}

// encode returns a frame of the events from up to before to.
func (p *pieces) encode(from, to int) []byte {
	begin := 0
	if from > 0 {
		begin = p.ends[from-1]
	}
	raw := p.raw[begin:p.ends[to-1]]
	data := p.fr.codec.Append(nil, raw)
	if !p.block {
		return data
	}
	m := cutMeta(&p.meta, from, to)
	m.RawLen, m.DataLen = uint64(len(raw)), uint64(len(data))
	return wire.AppendFrame(nil, p.fr.codec.Name(), wire.AppendMeta(nil, m, raw), data)
}

// cutMeta returns what m says of the events from up to before to; it shares memory with m.
func cutMeta(m *wire.Meta, from, to int) *wire.Meta {
	c := &wire.Meta{
		Gateway: m.Gateway, Stream: m.Stream, Partition: m.Partition, First: m.First + uint64(from),
		TableVersion: m.TableVersion, Framing: m.Framing, After: m.After,
		IDs: cutColumn(m.IDs, from, to), Times: cutColumn(m.Times, from, to), Attrs: cutColumn(m.Attrs, from, to),
		Requests: cutRequests(m.Requests, uint32(from), uint32(to)),
	}
	places, slots := map[uint32]uint32{}, map[int32]bool{}
	for _, route := range m.EventRoute[from:to] {
		at, known := places[route]
		if !known {
			r := m.Routes[route]
			at = uint32(len(c.Routes))
			places[route], c.Routes = at, append(c.Routes, r)
			slots[r.Slot], slots[r.Child] = slots[r.Slot] || r.Child == wire.None, true
		}
		c.EventRoute = append(c.EventRoute, at)
	}
	c.Epochs = slices.Clone(m.Epochs)
	c.Epochs = slices.DeleteFunc(c.Epochs, func(e wire.SlotEpoch) bool { return !slots[e.Slot] })
	return c
}

// cutColumn cuts a column that is empty or has a value per event.
func cutColumn[T any](column []T, from, to int) []T {
	if len(column) == 0 {
		return nil
	}
	return column[from:to]
}

// cutRequests returns the requests that the events from up to before to came with.
func cutRequests(requests []wire.Request, from, to uint32) (cut []wire.Request) {
	begin := uint32(0)
	for _, r := range requests {
		end := begin + r.Count
		r.Count = min(end, to) - min(max(begin, from), min(end, to))
		if r.Count > 0 {
			cut = append(cut, r)
		}
		begin = end
	}
	return cut
}
