package ingest

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/headgate-io/headgate/event"
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
	Unmade       bool        `json:"unmade,omitempty"` // the request would have made the stream
	TableVersion uint64      `json:"table_version,omitempty"`
	Events       []explained `json:"events"`
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

	Hash      string `json:"hash,omitempty"` // of the key, 16 hexadecimal digits
	Slot      *int32 `json:"slot,omitempty"`
	Child     *int32 `json:"child,omitempty"`
	Partition *int32 `json:"partition,omitempty"`

	Code   event.Code `json:"code,omitempty"`
	Detail string     `json:"detail,omitempty"`
	Failed string     `json:"failed,omitempty"` // what failed on it, although it went on
}

// try answers a dry run: everything is done but storing. Events are counted by no metric.
func (c *core) try(ctx context.Context, p *plan, b *event.Batch) answer {
	b.Trace("syntax")
	if problem := c.accept(ctx, p.stream, b, time.Now().Add(c.timeout)); problem != nil {
		return c.refused(&refusal{Problem: problem, Stream: p.counters.name}, p.who)
	}
	n := b.Counts()
	doc := trialDocument{
		Stream: p.name, DryRun: true, Status: p.would(b, n), Accepted: n.Accepted, Filtered: n.Filtered, Rejected: n.Rejected,
		Duplicates: n.Duplicates, DeadLettered: n.DeadLettered, Ack: b.Ack.String(), Unmade: p.settings.Unmade, TableVersion: b.TableVersion,
		Events: explain(b), Truncated: len(b.Events) > event.MaxTraces,
	}
	a := answer{status: 200, mediaType: "application/json", doc: marshal(doc)}
	a.finish(p.who)
	return a
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

func explain(b *event.Batch) []explained {
	all := make([]explained, min(len(b.Events), event.MaxTraces))
	for i := range all {
		e := &b.Events[i]
		x := &all[i]
		x.Index, x.Offset, x.Verdict, x.By = i, e.Offset, e.Verdict.String(), b.Traces[i].By
		x.Failed = b.Traces[i].Failed
		if len(e.ID) > 0 {
			x.ID, x.IDBase64 = text(e.ID)
		}
		if e.HasKey {
			x.Key, x.KeyBase64 = text(e.Key)
			x.KeyFrom = b.Traces[i].KeyFrom
		}
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
