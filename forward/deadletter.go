package forward

import (
	"cmp"
	"context"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/wire"
)

// DeadLetter takes the events that the backend refused for good.
type DeadLetter interface {
	// Bury returns nil when the event is safe. Until then its lane sends nothing: after an error it tries again, but for
	// a *SendError with Refused, which says that the dead letter will never take it either; then only its request
	// learns of it. Lanes call Bury concurrently. It returns soon after ctx has ended; r is lent until then.
	Bury(ctx context.Context, r *Refused) error
}

// Refused is an event that the backend refused for good, and what is known of it.
type Refused struct {
	// Event has its Data; and Key, HasKey, ID, Attrs and Time (its own or its request's) where the stream's codec
	// carries metadata.
	Event     event.Event
	Partition int32
	Number    uint64 // in the lane, where it leaves a gap
	Batch     string // id of its request
	Producer  string // of the request
	Index     int    // in the request; -1 when the request was of an earlier process
	Code      event.Code
	Reason    string // what the backend said
	Again     bool   // it is from an earlier process, which may have buried it and not noted that
}

// refusal is an event that the backend refused for good.
type refusal struct {
	at     int // its place in the frame
	code   event.Code
	buried bool // it is in the dead letter
}

// giveUp ends the way of an event that was refused alone: it goes to the dead letter, where there is one. The error is
// that of ctx, which ended before the event was safe.
func (l *lane) giveUp(ctx context.Context, p *pieces, at int, why *SendError) (refusal, error) {
	lost := refusal{at: at, code: cmp.Or(why.Code, event.BackendRefused)}
	if l.f.deadLetter != nil {
		r := p.refused(at, why)
		r.Partition, r.Code, r.Again = l.partition, lost.code, r.Number <= l.highest
		err := l.retry(ctx, "bury", func(ctx context.Context) error {
			err := l.f.deadLetter.Bury(ctx, r)
			lost.buried = err == nil
			if never := refused(err); never != nil {
				l.f.log.Error("the dead letter refused an event", "partition", l.partition, "number", r.Number, "error", never)
				return nil
			}
			return err
		})
		if err != nil {
			return lost, err
		}
	}
	number := p.fr.first + uint64(at)
	if lost.buried {
		l.f.log.Warn("the backend refused an event for good: it is in the dead letter", "partition", l.partition, "number", number, "error", why)
	} else {
		l.f.log.Error("the backend refused an event for good: it is dropped and its request told", "partition", l.partition, "number", number, "error", why)
	}
	return lost, nil
}

// refused describes an event of the frame; its bytes are the pieces'.
func (p *pieces) refused(at int, why *SendError) *Refused {
	begin := 0
	if at > 0 {
		begin = p.ends[at-1]
	}
	data, _, err := wire.NextEvent(p.raw[begin:], p.fr.framing)
	if err != nil {
		panic("BUG: forward: an event that was read once can't be read again: " + err.Error())
	}
	r := &Refused{Number: p.fr.first + uint64(at), Index: -1}
	r.Event.Data = data
	r.Reason = why.Error()
	if why.Err != nil {
		r.Reason = why.Err.Error()
	}
	if p.block {
		p.describe(at, r)
	}
	if len(p.fr.parts) > 0 {
		r.Batch, r.Producer = p.fr.origin(at)
		r.Index = int(p.fr.index[at])
	}
	return r
}

// describe fills in what the frame's metadata says of an event.
func (p *pieces) describe(at int, r *Refused) {
	m, e := cutMeta(&p.meta, at, at+1), &r.Event
	if len(m.Requests) > 0 {
		r.Batch, r.Producer = string(m.Requests[0].ID), string(m.Requests[0].Source)
	}
	route := m.Routes[0]
	e.Key, e.HasKey = route.Key, route.HasKey
	if len(m.IDs) > 0 {
		e.ID = m.IDs[0]
	}
	if len(m.Times) > 0 {
		e.Time = m.Times[0]
	}
	if e.Time == 0 && len(m.Requests) > 0 {
		e.Time = m.Requests[0].Time
	}
	if len(m.Attrs) > 0 {
		for _, a := range m.Attrs[0] {
			e.Attrs = append(e.Attrs, event.Attr(a))
		}
	}
}

// origin names the request of the event at a place, and who sent it.
func (fr *frame) origin(at int) (batch, producer string) {
	for _, p := range fr.parts {
		if at < p.events {
			return p.receipt.batch, p.receipt.producer
		}
		at -= p.events
	}
	panic("BUG: forward: an event of no request")
}
