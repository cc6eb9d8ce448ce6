package gateway

import (
	"context"
	"slices"
	"strconv"
	"unsafe"

	"github.com/headgate-io/headgate/event"
)

// The letters of a request are stored in parts, so that what is made of them at a time is bounded: in events, in bytes of
// what is made for them, and in bytes of their data, which the lanes copy. A part has at least one letter.
const (
	partLetters = 512
	partBytes   = 512 << 10
	partData    = 512 << 10
)

// What is made for a letter: its event, its own attributes, and the digits of its index.
const (
	ownAttrs   = 8
	indexBytes = 8
	letterCost = int64(unsafe.Sizeof(event.Event{})) + ownAttrs*attrCost + indexBytes
	attrCost   = int64(unsafe.Sizeof(event.Attr{}))
)

// prefix goes before the names of attributes that an event came with.
const prefix = "ce_"

// costOf returns what is made for a letter about e.
func costOf(e *event.Event) int64 {
	cost := letterCost
	for i := range e.Attrs {
		cost += attrCost + int64(len(prefix)+len(e.Attrs[i].Name))
	}
	return cost
}

// afford pays for the largest part of b's letters. It is called before anything of b is stored: who can't pay loses nothing.
func (d *deadLetter) afford(b *event.Batch) error {
	total, most := int64(0), int64(partBytes)
	for i := range b.Letters {
		cost := costOf(&b.Events[b.Letters[i].Index])
		total, most = total+cost, max(most, cost)
	}
	if total == 0 {
		return nil
	}
	if p := b.Pay(min(total, most)); p != nil {
		return p
	}
	return nil
}

// letters makes the entries of a batch's letters, in parts that share their memory.
type letters struct {
	of    *event.Batch
	texts map[string][]byte // of reasons and the like, each once
	list  []event.Event
	attrs []event.Attr
	bytes []byte
}

// part returns how many of list, which is not empty, are stored at once, and how many attributes and bytes they need.
func (l *letters) part(list []event.Letter) (n, attrs, bytes int) {
	var cost, data int64
	for ; n < min(len(list), partLetters); n++ {
		e := &l.of.Events[list[n].Index]
		cost += costOf(e)
		data += int64(len(l.of.Original(list[n].Index)))
		if n > 0 && (cost > partBytes || data > partData) {
			break
		}
		attrs, bytes = attrs+ownAttrs+len(e.Attrs), bytes+indexBytes
		for i := range e.Attrs {
			bytes += len(prefix) + len(e.Attrs[i].Name)
		}
	}
	return n, attrs, bytes
}

// entries makes the entries of the first letters of list, and returns the others. What it returned before is gone.
func (l *letters) entries(list []event.Letter) (part *event.Batch, rest []event.Letter) {
	n, attrs, bytes := l.part(list)
	l.list, l.attrs, l.bytes = slices.Grow(l.list[:0], n), slices.Grow(l.attrs[:0], attrs), slices.Grow(l.bytes[:0], bytes)
	for i := range list[:n] {
		l.add(&list[i])
	}
	b := l.of
	return &event.Batch{
		ID: b.ID, Producer: b.Producer, TraceParent: b.TraceParent, TraceState: b.TraceState, RequestID: b.RequestID, Arrived: b.Arrived,
		Chain: b.Chain, Ack: b.Ack, Events: l.list,
	}, list[n:]
}

func (l *letters) add(letter *event.Letter) {
	e, from, at := &l.of.Events[letter.Index], len(l.attrs), len(l.bytes)
	l.attr("code", l.text(string(letter.Code)))
	l.attr("reason", l.text(letter.Detail))
	l.attr("plugin", l.text(letter.Plugin))
	l.attr("digest", l.text(letter.Digest))
	l.attr("batch_id", l.text(l.of.ID))
	l.bytes = strconv.AppendInt(l.bytes, int64(letter.Index), 10)
	l.attr("index", l.bytes[at:])
	l.attr(producerAttr, l.of.Producer)
	if common := l.of.Common; common != nil && !e.HasKey {
		l.attrs = append(l.attrs, event.Attr{Name: l.text(requestKeyAttr), Value: common})
	}
	for _, a := range e.Attrs {
		if own, ok := ownName(a.Name); ok {
			l.attr(own, a.Value)
			continue
		}
		at := len(l.bytes)
		l.bytes = append(append(l.bytes, prefix...), a.Name...)
		l.attrs = append(l.attrs, event.Attr{Name: l.bytes[at:len(l.bytes):len(l.bytes)], Value: a.Value})
	}
	l.list = append(l.list, event.Event{
		Data: l.of.Original(letter.Index), Key: e.Key, HasKey: e.HasKey, ID: e.ID, Time: e.Time,
		Attrs: l.attrs[from:len(l.attrs):len(l.attrs)],
	})
}

// attr adds an attribute of the last entry, unless its value is empty.
func (l *letters) attr(name string, value []byte) {
	if len(value) > 0 {
		l.attrs = append(l.attrs, event.Attr{Name: l.text(name), Value: value[:len(value):len(value)]})
	}
}

// text returns s as bytes that nobody changes. There are as many as a chain has plugins and ways to fail, and not more.
func (l *letters) text(s string) []byte {
	t, ok := l.texts[s]
	if !ok {
		t = []byte(s)
		l.texts[s] = t
	}
	return t
}

// bury stores the events of b that were set aside. Those that could not be stored are refused instead, with the reason
// they had. The error is an *event.Problem that says that what is stored is unknown.
func (d *deadLetter) bury(ctx context.Context, b *event.Batch) error {
	if len(b.Letters) == 0 {
		return nil
	}
	l := letters{of: b, texts: make(map[string][]byte)}
	for list := b.Letters; len(list) > 0; {
		part, rest := l.entries(list)
		if len(rest) > 0 { // the next part has its place in the lanes when this one is out of them
			part.Ack = max(part.Ack, event.Durable)
		}
		err := d.take(ctx, part)
		if isUnknown(err) {
			return err
		}
		if err != nil {
			d.g.log.Warn("the dead letter takes nothing: the events are refused", "stream", b.Stream, "events", len(list), "error", err)
			refuseUnburied(b, list)
			return nil
		}
		for i := range part.Events {
			if part.Events[i].Verdict != event.Keep {
				refuseUnburied(b, list[i:i+1])
				continue
			}
			d.g.deadLettered.WithLabelValues(b.Stream, string(list[i].Code)).Inc()
		}
		list = rest
	}
	return nil
}

// refuseUnburied refuses the events that the dead letter did not take.
func refuseUnburied(b *event.Batch, list []event.Letter) {
	for _, l := range list {
		detail := l.Detail
		if !b.Full() { // else nobody is told
			detail += "; and the dead letter did not take it"
		}
		b.Reject(l.Index, l.Code, detail)
	}
}

// refuseLetters refuses what was set aside: mode=strict stores all or nothing.
func refuseLetters(b *event.Batch) {
	for _, l := range b.Letters {
		b.Reject(l.Index, l.Code, l.Detail)
	}
}
