package gateway

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/headgate-io/headgate/event"
)

// wallet grants so many bytes.
type wallet struct{ left int64 }

func (w *wallet) Pay(n int64) *event.Problem {
	if n > w.left {
		return event.Problemf(event.Overloaded, "nothing is left")
	}
	w.left -= n
	return nil
}

func (w *wallet) Refund(n int64) { w.left += n }

// setAside is a batch all of whose events were set aside.
func setAside(n int, data []byte, attrs []event.Attr) *event.Batch {
	b := &event.Batch{ID: "B", Producer: []byte("me")}
	for i := range n {
		b.Events = append(b.Events, event.Event{Data: data, Attrs: attrs})
		b.SetAside(event.Letter{Index: i, Code: event.PluginFailed, Detail: "why", Plugin: "p", Digest: "d"})
	}
	return b
}

// Whatever the letters, a part of them is bounded, each is in one part, and their texts are there once.
func TestLettersAreMadeInParts(t *testing.T) {
	many := make([]event.Attr, 100)
	for i := range many {
		many[i] = event.Attr{Name: []byte("name"), Value: []byte("value")}
	}
	for name, c := range map[string]struct {
		b     *event.Batch
		parts int
	}{
		"few":        {setAside(3, []byte("x"), nil), 1},
		"many":       {setAside(2*partLetters+1, []byte("x"), nil), 3},
		"much data":  {setAside(5, make([]byte, partData/2), nil), 3},
		"too large":  {setAside(3, make([]byte, partData+1), nil), 3},
		"attributes": {setAside(150, []byte("x"), many), 2},
	} {
		l, next, parts := letters{of: c.b, texts: make(map[string][]byte)}, 0, 0
		for list := c.b.Letters; len(list) > 0; parts++ {
			var part *event.Batch
			before := len(list)
			part, list = l.entries(list)
			if len(part.Events) != before-len(list) || len(part.Events) > partLetters {
				t.Fatalf("%s: a part of %d events for %d letters", name, len(part.Events), before-len(list))
			}
			for i := range part.Events {
				e := &part.Events[i]
				want := fmt.Sprintf("code=plugin_failed reason=why plugin=p digest=d batch_id=B index=%d producer=me", next)
				want += strings.Repeat(" ce_name=value", len(c.b.Events[next].Attrs))
				if got := spelled(e.Attrs); got != want || !bytes.Equal(e.Data, c.b.Events[next].Data) {
					t.Fatalf("%s: entry %d has %s, want %s", name, next, got, want)
				}
				if &e.Attrs[1].Value[0] != &l.texts["why"][0] {
					t.Fatalf("%s: entry %d has a reason of its own", name, next)
				}
				next++
			}
		}
		if next != len(c.b.Letters) || parts != c.parts {
			t.Errorf("%s: %d letters in %d parts, want %d in %d", name, next, parts, len(c.b.Letters), c.parts)
		}
	}
}

func spelled(attrs []event.Attr) string {
	var all []string
	for _, a := range attrs {
		all = append(all, string(a.Name)+"="+string(a.Value))
	}
	return strings.Join(all, " ")
}

// After the first part, the others are made in its memory.
func TestPartsOfLettersShareTheirMemory(t *testing.T) {
	b := setAside(20*partLetters, []byte("x"), nil)
	l := letters{of: b, texts: make(map[string][]byte)}
	_, list := l.entries(b.Letters)
	if n := testing.AllocsPerRun(15, func() { _, list = l.entries(list) }); n > 1 { // the batch
		t.Errorf("a part takes %v allocations", n)
	}
}

// What is made at a time is paid for before: all of few letters, a part of many, and the largest of large ones.
func TestLettersArePaidFor(t *testing.T) {
	large := []event.Attr{{Name: make([]byte, 2*partBytes)}}
	var d *deadLetter
	for name, c := range map[string]struct {
		b    *event.Batch
		cost int64
	}{
		"none":  {setAside(0, nil, nil), 0},
		"few":   {setAside(3, nil, nil), 3 * letterCost},
		"many":  {setAside(100_000, nil, nil), partBytes},
		"large": {setAside(2, nil, large), letterCost + attrCost + int64(len(prefix)) + 2*partBytes},
	} {
		w := &wallet{left: c.cost}
		c.b.Payer = w
		if err := d.afford(c.b); err != nil || w.left != 0 {
			t.Errorf("%s: %v, %d bytes too few", name, err, w.left)
		}
		if c.cost > 0 {
			wantCode(t, d.afford(c.b), event.Overloaded)
		}
	}
}

// A stream that can't pay for the letters of a request stores nothing of it.
func TestWhoCannotPayForLettersStoresNothing(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	in.scriptedPlugin("web", "scripted")
	s := (*in.streams.Load())["web"]
	b := &event.Batch{ID: "B", Stream: "web", Ack: event.Durable, Events: []event.Event{{Data: []byte("0good")}, {Data: []byte("t")}}}
	w := &wallet{left: 16*int64(unsafe.Sizeof(event.Letter{})) + letterCost - 1} // enough to set it aside
	b.Payer = w
	wantCode(t, s.Accept(t.Context(), b), event.Overloaded)
	if w.left != letterCost-1 || len(b.Letters) != 1 {
		t.Errorf("%d bytes are left and %d letters, want %d and 1", w.left, len(b.Letters), letterCost-1)
	}
	if rows, letters := in.rows("web"), in.deadLetters("web"); len(rows)+len(letters) != 0 {
		t.Errorf("stored: %v and %v", rows, letters)
	}
}

// Letters of more than one part are all there, in order.
func TestManyLettersComeInOrder(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	in.scriptedPlugin("web", "scripted")
	const n = 2*partLetters + 10
	status, a := in.send("web/events?ack=durable", "text/plain", strings.Repeat("t\n", n))
	if status != 200 || a.DeadLettered != n {
		t.Fatalf("%d %+v", status, a)
	}
	got := in.deadLetters("web")
	if len(got) != a.DeadLettered {
		t.Fatalf("the dead letter has %d entries of %d", len(got), a.DeadLettered)
	}
	for i, e := range got {
		if e.Attributes["index"] != fmt.Sprint(i) || e.Number != uint64(i+1) {
			t.Fatalf("entry %d: %+v", i, e)
		}
	}
}
