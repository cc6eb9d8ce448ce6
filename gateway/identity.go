package gateway

import (
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/internal/problem"
	"github.com/headgate-io/headgate/internal/window"
)

// refSize is what the id of an event costs while its request runs. Lists of more than refsKept are not kept.
const (
	refSize  = int64(unsafe.Sizeof(window.Ref{}))
	refsKept = 16 << 10
)

var refLists = sync.Pool{New: func() any { return new([]window.Ref) }}

// claim looks the ids of the events up that are kept. Events whose id is safe are duplicates; so, for now, are those
// whose id is on its way, with which p goes on; the ids of all others are claimed.
func (s *stream) claim(b *event.Batch, p *passage) error {
	if !b.HasIDs || s.current.Load().config.ID.None {
		return nil
	}
	if unpaid := b.Pay(refSize * int64(len(b.Events))); unpaid != nil {
		return unpaid
	}
	list := refLists.Get().(*[]window.Ref)
	defer func() {
		if clear(*list); cap(*list) <= refsKept { // claims
			refLists.Put(list)
		}
	}()
	*list = s.identities(b, (*list)[:0])
	claim, ok := s.ids.Claim(*list, window.Owner(b.Owner), time.Now())
	if !ok {
		return event.Problemf(event.Overloaded, "more events with ids are on their way to stream %s than your part of its window has room for (id.window.ids); send again later", s.name)
	}
	p.claim = claim
	for _, r := range *list {
		if r.Standing == window.Fresh {
			continue
		}
		b.Events[r.Place].Verdict = event.Duplicate
		if r.Standing == window.Pending {
			p.twins = append(p.twins, r)
		}
	}
	return nil
}

// identities appends the events of b that are kept and have an id.
func (s *stream) identities(b *event.Batch, refs []window.Ref) []window.Ref {
	producer := window.Series{Namer: s.secret.Namer(b.Caller, b.Producer)}
	for i := range b.Events {
		e := &b.Events[i]
		if e.Verdict != event.Keep || len(e.ID) == 0 {
			continue
		}
		var id window.ID
		if source := sourceOf(e); source != nil {
			id = s.secret.Namer(b.Caller, source).Of(e.ID)
		} else {
			id = producer.Of(e.ID)
		}
		refs = append(refs, window.Ref{ID: id, Place: int32(i)})
	}
	return refs
}

// dropped forgets the id of an event that neither the backend nor the dead letter takes, so that it can be sent again: it may
// have been durable, and is nowhere now.
func (d *deadLetter) dropped(r *forward.Refused) {
	if s := (*d.g.streams.Load())[strings.TrimSuffix(d.name, event.DeadLetterSuffix)]; s != nil {
		s.release(r, d.g.cfg.Auth)
	}
}

// release frees the id of an event for whoever sent it. Frames do not say which caller that was: it is tried for all.
func (s *stream) release(r *forward.Refused, a *config.Auth) {
	if len(r.Event.ID) == 0 {
		return
	}
	source := sourceOf(&r.Event)
	if source == nil {
		source = []byte(r.Producer)
	}
	s.ids.Free(s.secret.Namer(nil, source).Of(r.Event.ID))
	if a != nil {
		for i := range a.Tokens {
			s.ids.Free(s.secret.Namer([]byte(a.Tokens[i].ID), source).Of(r.Event.ID))
		}
	}
	s.ids.Flush()
	if s.idLog != nil {
		_ = s.idLog.Sync() // it says itself what it could not write
	}
}

// sourceOf is the source that a CloudEvent names itself, whoever sends it; nil for other events.
func sourceOf(e *event.Event) []byte {
	for i := range e.Attrs {
		if string(e.Attrs[i].Name) == "source" {
			return e.Attrs[i].Value
		}
	}
	return nil
}

// twin says what has become of an event whose id another one brought before it. One that is not safe thereby was not tried
// itself, whatever it holds. The error says that this is not known.
func twin(b *event.Batch, r *window.Ref) error {
	fate, whole := r.Of.Fate(r.First)
	switch {
	case whole != nil && whole.Stored == event.StoredUnknown:
		return whole
	case whole != nil:
		notTried(b, r, whole.Code, "its request was refused: "+whole.Detail)
	case fate.Verdict == event.Rejected:
		notTried(b, r, fate.Code, fate.Detail)
	case fate.Verdict == event.DeadLettered:
		notTried(b, r, event.SameIDFailed, refusedForGood+" and it was set aside")
	}
	return nil
}

// notTried refuses an event because of what befell the one with the same id before it. When that cannot be mended by
// sending again, this one still can be sent.
func notTried(b *event.Batch, r *window.Ref, code event.Code, why string) {
	if kind, _ := problem.Of(code); !kind.Retryable {
		code = event.SameIDFailed
	}
	b.Reject(int(r.Place), code, "another event with this id came first, and "+why+"; this one was not tried, send it again")
}

func newWindow(c *config.ID) *window.Set {
	return window.RecoverSet(c.Window.IDs, time.Duration(c.Window.Age), time.Now())
}
