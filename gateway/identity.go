package gateway

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/problem"
	"github.com/headgate-io/headgate/internal/settings"
	"github.com/headgate-io/headgate/internal/window"
	"github.com/headgate-io/headgate/plugins/builtin"
)

// IDConfig says where the id of an event is found, by which a repetition is recognised; at most one of the first four is
// set. A CloudEvent has an id always, and a source.
type IDConfig struct {
	JSON   string         `json:"json,omitempty"`   // JSON pointer into the event (RFC 6901)
	Header string         `json:"header,omitempty"` // request header
	CE     string         `json:"ce,omitempty"`     // "id": CloudEvents only, which is what happens without any setting
	None   bool           `json:"none,omitempty"`   // repetitions are not looked for, of CloudEvents neither
	Window IDWindowConfig `json:"window"`
}

// UnmarshalText reads the short form `id: none`.
func (c *IDConfig) UnmarshalText(text []byte) error {
	if string(text) != "none" {
		return fmt.Errorf("%q is no id; write {json: /pointer}, {header: name}, {ce: id} or none", text)
	}
	*c = IDConfig{None: true}
	return nil
}

// IDWindowConfig bounds the ids that are remembered.
type IDWindowConfig struct {
	IDs int               `json:"ids"` // the oldest are forgotten first when there are more
	Age settings.Duration `json:"age"` // after their event was safe
}

// maxIDs bounds the ids of a stream: 320 MB.
const maxIDs = 10_000_000

func (c *IDConfig) extractor() builtin.ID {
	return builtin.ID{JSON: c.JSON, Header: strings.ToLower(c.Header)}
}

func (c *IDConfig) problem(eventsOfRequest int) error {
	all := []error{
		c.extractor().Validate(),
		mustBe(c.CE == "" || c.CE == "id", "ce: the attribute is id, not %q", c.CE),
	}
	set := 0
	for _, one := range []bool{c.JSON != "", c.Header != "", c.CE != "", c.None} {
		if one {
			set++
		}
	}
	all = append(all, mustBe(set <= 1, "set one of json, header, ce and none"))
	least := max(eventsOfRequest, 1)
	if c.JSON == "" && c.Header == "" {
		least = 1
	}
	all = append(all,
		mustBe(c.Window.IDs >= least && c.Window.IDs <= maxIDs, "window.ids: must be %d (limits.events) to %d, got %d", least, maxIDs, c.Window.IDs),
		mustBe(c.Window.Age >= settings.Duration(time.Second), "window.age: must be at least 1s, got %s", time.Duration(c.Window.Age)))
	return errors.Join(all...)
}

func (c *IDConfig) window() *window.Set {
	return window.NewSet(c.Window.IDs, time.Duration(c.Window.Age), time.Now())
}

// refSize is what the id of an event costs while its request runs. Lists of more than refsKept are not kept.
const (
	refSize  = int64(unsafe.Sizeof(window.Ref{}))
	refsKept = 16 << 10
)

var refLists = sync.Pool{New: func() any { return new([]window.Ref) }}

// claim looks the ids of the events up that are kept. Events whose id is safe are duplicates; so, for now, are those
// whose id is on its way, with which p goes on; the ids of all others are claimed.
func (s *stream) claim(b *event.Batch, p *passage) error {
	if !b.Named || s.current.Load().config.ID.None {
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
	producer := s.secret.Namer(b.Caller, b.Producer)
	for i := range b.Events {
		e := &b.Events[i]
		if e.Verdict != event.Keep || len(e.ID) == 0 {
			continue
		}
		namer := producer
		if source := sourceOf(e); source != nil {
			namer = s.secret.Namer(b.Caller, source)
		}
		refs = append(refs, window.Ref{ID: namer.Of(e.ID), Place: int32(i)})
	}
	return refs
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
	case whole != nil && whole.Stored == "unknown":
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

// idMetrics are the ids of all streams that have some.
type idMetrics struct {
	g           *Gateway
	ids, window *prometheus.Desc
}

func newIDMetrics(g *Gateway) *idMetrics {
	return &idMetrics{
		g:   g,
		ids: prometheus.NewDesc("headgate_ids", "Ids of events: pending ones are on their way, remembered ones are safe.", []string{"stream", "state"}, nil),
		window: prometheus.NewDesc("headgate_ids_window_seconds",
			"How far back every id of the stream is remembered; less than configured after a start, and when ids of a caller had to make room: then for that one.", []string{"stream"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *idMetrics) Describe(out chan<- *prometheus.Desc) { out <- m.ids; out <- m.window }

// Collect implements prometheus.Collector.
func (m *idMetrics) Collect(out chan<- prometheus.Metric) {
	for name, s := range *m.g.streams.Load() {
		state := s.ids.State(time.Now())
		if state.Pending+state.Finished == 0 && s.current.Load().id == (builtin.ID{}) {
			continue
		}
		out <- prometheus.MustNewConstMetric(m.ids, prometheus.GaugeValue, float64(state.Pending), name, "pending")
		out <- prometheus.MustNewConstMetric(m.ids, prometheus.GaugeValue, float64(state.Finished), name, "remembered")
		out <- prometheus.MustNewConstMetric(m.window, prometheus.GaugeValue, state.Reach.Seconds(), name)
	}
}
