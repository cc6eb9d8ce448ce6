package ingest

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"unicode/utf8"
	"unsafe"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/problem"
)

// trialDocument is the answer to a dry run.
type trialDocument struct {
	Stream       string      `json:"stream"`
	DryRun       bool        `json:"dry_run"`
	Status       int         `json:"status"` // that the request would have got
	Accepted     int         `json:"accepted"`
	Filtered     int         `json:"filtered"`
	Rejected     int         `json:"rejected"`
	Duplicates   int         `json:"duplicates"`
	DeadLettered int         `json:"deadlettered"`
	Ack          string      `json:"ack"`
	Chain        string      `json:"chain,omitempty"`
	Unmade       bool        `json:"unmade,omitempty"` // the request would have made the stream
	TableVersion uint64      `json:"table_version,omitempty"`
	Events       []explained `json:"events"` // appended one by one, and what follows
	Truncated    bool        `json:"events_truncated,omitempty"`
}

// explained says what would become of an event, and why.
type explained struct {
	Index     int     `json:"index"`
	Offset    int     `json:"offset"`
	Verdict   string  `json:"verdict"`
	By        string  `json:"by,omitempty"` // what decided: syntax, id, key, plugin NAME
	ID        *string `json:"id,omitempty"`
	IDBase64  string  `json:"id_base64,omitempty"`
	Key       *string `json:"key,omitempty"`
	KeyBase64 string  `json:"key_base64,omitempty"`
	KeyFrom   string  `json:"key_from,omitempty"` // plugin NAME, json POINTER, header NAME, ce NAME, Headgate-Key

	Ordering  string `json:"ordering,omitempty"` // that the request asks for and that is stricter than the stream's
	Hash      string `json:"hash,omitempty"`     // of the key, 16 hexadecimal digits
	Slot      *int32 `json:"slot,omitempty"`
	Child     *int32 `json:"child,omitempty"`
	Partition *int32 `json:"partition,omitempty"`

	Code   event.Code `json:"code,omitempty"`
	Detail string     `json:"detail,omitempty"`
	Failed string     `json:"failed,omitempty"` // what failed on it, although it went on
}

const explainedSize = int64(unsafe.Sizeof(explained{}))

// mostExplained bounds the list of events in the answer to a dry run, in bytes: one event more may be begun.
const mostExplained = 1 << 20

// try answers a dry run: everything is done but storing. Events are counted by no metric.
func (c *core) try(ctx context.Context, p *plan, w *work) answer {
	b := &w.batch
	b.Trace("syntax")
	no := w.account.Pay(int64(min(len(b.Events), event.MaxTraces)) * (event.TraceSize + explainedSize))
	if no == nil {
		no = c.accept(ctx, p.stream, b, w.account.until)
	}
	var doc []byte
	if no == nil {
		doc, no = p.explain(b, &w.account)
	}
	if no != nil {
		return c.refused(&refusal{Problem: no, Stream: p.counters.name}, p.who)
	}
	a := answer{status: 200, mediaType: "application/json", doc: doc, owed: w.account.lend(int64(cap(doc)))}
	a.finish(p.who)
	return a
}

// explain returns the answer's document, whose capacity is paid for.
func (p *plan) explain(b *event.Batch, account *account) ([]byte, *event.Problem) {
	n := b.Counts()
	head := problem.Marshal(trialDocument{
		Stream: p.name, DryRun: true, Status: p.would(b, n), Accepted: n.Accepted, Filtered: n.Filtered, Rejected: n.Rejected,
		Duplicates: n.Duplicates, DeadLettered: n.DeadLettered, Ack: b.Ack.String(), Chain: b.Chain, Unmade: p.settings.Unmade, TableVersion: b.TableVersion,
		Events: []explained{},
	})
	d := paidDocument{account: account}
	if no := d.append(bytes.TrimSuffix(head, []byte("]}"))); no != nil {
		return nil, no
	}
	all := explain(b)
	for i := range all {
		if len(d.doc) > mostExplained {
			all = all[:i]
			break
		}
		all[i].keys(b, i)
		if i > 0 {
			d.doc = append(d.doc, ',')
		}
		if no := d.append(problem.Marshal(&all[i])); no != nil {
			return nil, no
		}
	}
	d.doc = append(d.doc, ']')
	if len(all) < len(b.Events) {
		d.doc = append(d.doc, `,"events_truncated":true`...)
	}
	return append(d.doc, '}'), nil
}

// paidDocument is an answer that grows, and pays for its capacity.
type paidDocument struct {
	doc     []byte
	account *account
}

// append appends text, and has room for some more bytes afterwards.
func (d *paidDocument) append(text []byte) *event.Problem {
	const more = 64
	if old := cap(d.doc); old-len(d.doc) < len(text)+more {
		size := max(2*old, len(d.doc)+len(text)+more, 4<<10)
		if no := d.account.Pay(int64(size)); no != nil {
			return no
		}
		d.doc = append(make([]byte, 0, size), d.doc...)
		d.account.Refund(int64(old))
	}
	d.doc = append(d.doc, text...)
	return nil
}

// would is the status that the request would have got.
func (p *plan) would(b *event.Batch, n event.Counts) int {
	switch {
	case b.Strict && n.Rejected+n.DeadLettered > 0:
		return statusOf(event.StrictRejected)
	case n.Rejected > 0 && n.Rejected == len(b.Events):
		return p.blame(b).Status
	case n.Rejected > 0:
		return 207
	case b.Ack == event.Accepted:
		return 202
	}
	return 200
}

// explain returns what there is to say of the first events but for their ids and keys.
func explain(b *event.Batch) []explained {
	all := make([]explained, min(len(b.Events), event.MaxTraces))
	for i := range all {
		e := &b.Events[i]
		x := &all[i]
		x.Index, x.Offset, x.Verdict, x.By = i, e.Offset, e.Verdict.String(), b.Traces[i].By
		x.Failed = b.Traces[i].Failed
		if e.Verdict == event.Keep {
			x.place(e)
		}
	}
	for _, e := range b.Errors {
		if e.Index < len(all) {
			all[e.Index].Offset, all[e.Index].Code, all[e.Index].Detail = e.Offset, e.Code, e.Detail
		}
	}
	for _, l := range b.Letters {
		if l.Index < len(all) {
			all[l.Index].Code, all[l.Index].Detail = l.Code, l.Detail
		}
	}
	return all
}

// keys sets what is copied of event i, once its turn has come.
func (x *explained) keys(b *event.Batch, i int) {
	e := &b.Events[i]
	if len(e.ID) > 0 {
		x.ID, x.IDBase64 = text(e.ID)
	}
	x.Ordering = b.Class.String()
	if e.HasKey {
		x.Key, x.KeyBase64 = text(e.Key)
		x.KeyFrom = b.Traces[i].KeyFrom
	}
}

// place says where a kept event would go.
func (x *explained) place(e *event.Event) {
	if e.Partition >= 0 {
		x.Partition = &e.Partition
	}
	if e.Slot == event.NoSlot {
		return
	}
	x.Hash, x.Slot = fmt.Sprintf("%016x", e.Hash), &e.Slot
	if e.Child != event.NoSlot {
		x.Child = &e.Child
	}
}

// text is what is UTF-8 as a string, else base64.
func text(p []byte) (*string, string) {
	if !utf8.Valid(p) {
		return nil, base64.StdEncoding.EncodeToString(p)
	}
	s := string(p)
	return &s, ""
}
