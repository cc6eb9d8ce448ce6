package forward

import (
	"encoding/binary"
	"sync"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/internal/compress"
	"github.com/headgate-io/headgate/sdk/wire"
)

// frame is consecutive events of one lane, first open, then waiting to be sealed, then sealed. From sealing on
// its bytes never change.
type frame struct {
	draft   *draft  // until it is sealed
	payload *buffer // from then on
	codec   *compress.Codec
	lane    *lane
	waited  bool // a request waits for some of it to be more than accepted
	urgent  bool // or to be delivered

	released bool // its round has begun

	entry    spool.Entry // lent to the spool while it is
	spooling bool        // which then looks at the payload; this and what follows is guarded by the lane's mu
	durable  bool        // in the spool, or confirmed: receipts know
	over     bool        // the lane is done with it: the spool recycles it

	names        int          // lane.told when it was opened, 0 when it names no predecessors
	framing      wire.Framing // Prefixed holds any event, NDJSON those without a newline
	tableVersion uint64
	first        uint64 // number of its first event, from sealing on
	events       int
	delivered    int   // of them an earlier process has delivered or given up so many, the first ones
	held         int64 // bytes of the budget

	index []int32 // per event its place in its request
	parts []part  // whose events they are, in order
}

// part is the events that one batch has in a frame.
type part struct {
	receipt *Receipt
	events  int
}

// What the budget is charged for beside the bytes of an event, its key, its id and its attributes: its places in
// the metadata columns; and what a sealed frame takes beside its payload.
const (
	eventOverhead = 48
	labelOverhead = 48 // of one with an id or attributes
	attrOverhead  = 48 // of an attribute
	frameOverhead = 512
	partOverhead  = 192 // with its share of the receipt
)

var (
	frames = sync.Pool{New: func() any { return new(frame) }}
	drafts = sync.Pool{New: func() any { return new(draft) }}
)

// weight is what an event of b is charged for until it is sealed. The key that it has in common with others is the
// request's.
func weight(b *event.Batch, e *event.Event) int64 { return weigh(e, isCommon(b, e)) }

func weigh(e *event.Event, common bool) int64 {
	n := len(e.Data) + eventOverhead
	if !common {
		n += len(e.Key)
	}
	if len(e.ID)+len(e.Attrs) > 0 {
		n += labels(e) + labelOverhead + attrOverhead*len(e.Attrs)
	}
	return int64(n)
}

// isCommon tells that the key of e is the one of its request, the same bytes in memory.
func isCommon(b *event.Batch, e *event.Event) bool {
	return len(e.Key) == len(b.Common) && len(e.Key) > 0 && &e.Key[0] == &b.Common[0]
}

// weightOf is the weight of the events at which.
func weightOf(b *event.Batch, which []int32) (bytes int64) {
	for _, at := range which {
		bytes += weight(b, &b.Events[at])
	}
	return bytes
}

// requestWeight is what each lane is charged for that gets events of the request: what its metadata says of it.
func requestWeight(b *event.Batch) int64 {
	return int64(len(b.ID) + len(b.Producer) + len(b.TraceParent) + len(b.TraceState) + len(b.RequestID) + len(b.Caller) + len(b.Chain) + len(b.Common))
}

// takeFrame returns an empty frame.
func takeFrame() *frame {
	fr := frames.Get().(*frame)
	if fr.entry.Done == nil {
		fr.entry.Done = fr.spooled
	}
	return fr
}

// openFrame returns an empty frame for about n bytes of limit.
func openFrame(n, limit int, framing wire.Framing, version uint64) *frame {
	fr := takeFrame()
	fr.draft = drafts.Get().(*draft)
	fr.framing, fr.tableVersion = framing, version
	fr.draft.open(n, limit, framing, version)
	return fr
}

// fill copies events from the front of which for as long as they may enter the frame; it returns how many did, and
// their weight.
func (fr *frame) fill(in *intake, which []int32, cfg *Config) (n int, bytes int64) {
	if fr.tableVersion != in.batch.TableVersion {
		return 0, 0
	}
	which = which[:min(len(which), cfg.FrameEvents-fr.events)]
	fr.draft.common = 0
	for _, at := range which {
		e := &in.batch.Events[at]
		if !fr.fits(len(e.Data)+labels(e), cfg) || fr.framing == wire.NDJSON && in.newline(e) {
			break
		}
		common := isCommon(in.batch, e)
		fr.draft.add(e, common)
		bytes += weigh(e, common)
		n++
	}
	if n > 0 {
		fr.draft.request(in.batch, n)
		fr.parts = append(fr.parts, part{receipt: in.receipt, events: n})
		fr.index = append(fr.index, which[:n]...)
		fr.waited = fr.waited || in.batch.Ack > event.Accepted
		fr.urgent = fr.urgent || in.batch.Ack > event.Durable
		fr.events += n
		fr.held += bytes
	}
	return n, bytes
}

// labels is the size of the id and the attributes of an event, which count as its bytes do.
func labels(e *event.Event) int {
	n := len(e.ID)
	for i := range e.Attrs {
		n += len(e.Attrs[i].Name) + len(e.Attrs[i].Value)
	}
	return n
}

// fits tells whether another event of n bytes leaves the frame within its limit. An empty frame takes any.
func (fr *frame) fits(n int, cfg *Config) bool {
	used := len(fr.draft.raw.b) + fr.draft.labels
	return used+n+binary.MaxVarintLen64 <= cfg.FrameBytes || used == 0
}

// full tells that no event will enter the frame any more.
func (fr *frame) full(cfg *Config) bool {
	return fr.events >= cfg.FrameEvents || !fr.fits(0, cfg)
}

// last is the number of its last event.
// left is how many events are still to be delivered.
func (fr *frame) left() int { return fr.events - fr.delivered }

func (fr *frame) last() uint64 { return fr.first + uint64(fr.events) - 1 }

// settle tells the receipts what has become of the frame's events: those refused, in order, and all others confirmed.
// News says that they do not know yet that the events are safe.
func (fr *frame) settle(refused []refusal, news bool) {
	end := 0
	for _, p := range fr.parts {
		end += p.events
		for len(refused) > 0 && refused[0].at < end {
			p.receipt.fail(fr.index[refused[0].at], refused[0])
			refused = refused[1:]
		}
		if news {
			p.receipt.safe(p.events)
		}
		p.receipt.settle(p.events)
	}
}

// recycle gives the frame's memory back; the caller must be its only user.
func (fr *frame) recycle() {
	if fr.draft != nil {
		fr.draft.recycle()
	}
	if fr.payload != nil {
		give(fr.payload)
	}
	clear(fr.parts)
	*fr = frame{index: fr.index[:0], parts: fr.parts[:0], entry: spool.Entry{Done: fr.entry.Done}}
	frames.Put(fr)
}
