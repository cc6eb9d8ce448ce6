package event

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/headgate-io/headgate/internal/race"
)

// purse grants so many bytes.
type purse struct{ left, spent int64 }

func (p *purse) Pay(n int64) *Problem {
	if n > p.left {
		return &Problem{Code: Overloaded}
	}
	p.left, p.spent = p.left-n, p.spent+n
	return nil
}

func (p *purse) Refund(n int64) { p.left, p.spent = p.left+n, p.spent-n }

// What an event was that is gone does not come back in the next one at its place.
func TestNextEventsAreEmpty(t *testing.T) {
	b := &Batch{}
	used := Event{Data: []byte("d"), Key: []byte("k"), ID: []byte("i"), Attrs: make([]Attr, 1), Fields: [MaxFields]Span{{Off: 1, Len: 2, Duplicate: true}},
		Time: 1, Hash: 2, Offset: 3, Partition: 4, Slot: 5, Child: 6, Epoch: 7, HasKey: true, Verdict: Rejected}
	for _, n := range []int{3, 16, 17, 300, 2, 1000, 20_000, 5, 64, 16} {
		b.Room(n / 2)
		for i := range n {
			if i == cap(b.Events) {
				b.Room(n)
			}
			e := b.Next()
			if !reflect.DeepEqual(*e, Event{}) {
				t.Fatalf("event %d of %d: %+v", i, n, *e)
			}
			*e = used
		}
		b.Reset()
	}
}

func TestEventsArePaidForBeforeTheyHaveRoom(t *testing.T) {
	p := &purse{left: 1000 * eventSize}
	b := &Batch{Payer: p}
	for n := 1; ; n++ {
		if problem := b.Room(n); problem != nil {
			if b.Unpaid() != problem || len(b.Events) != 256 { // the next size is 1024
				t.Errorf("refused at %d events: %v", n, b.Unpaid())
			}
			break
		}
		if b.Events = append(b.Events, Event{Offset: n}); p.spent != int64(cap(b.Events))*eventSize {
			t.Fatalf("%d bytes are paid for room for %d events", p.spent, cap(b.Events))
		}
	}
	for i := range b.Events {
		if b.Events[i].Offset != i+1 {
			t.Fatalf("event %d is another one", i)
		}
	}
	if b.Reset(); p.spent != 0 || b.Events != nil {
		t.Errorf("%d bytes are paid after Reset", p.spent)
	}
	for range 3 { // the smallest list stays with the batch, and is paid for each time
		b.Payer = p
		if b.Room(1) != nil || p.spent != 16*eventSize {
			t.Errorf("%d bytes are paid for one event", p.spent)
		}
		b.Events = append(b.Events, Event{Offset: 1})
		if b.Reset(); p.spent != 0 || len(b.Events) != 0 || cap(b.Events) != 16 || b.Events[:1][0].Offset != 0 {
			t.Errorf("after Reset %d bytes are paid, room for %d", p.spent, cap(b.Events))
		}
	}
	b.Payer = p
	b.Room(1)
	if b.Room(17); p.spent != 64*eventSize {
		t.Errorf("%d bytes are paid for 17 events", p.spent)
	}
	if b.Reset(); p.spent != 0 {
		t.Errorf("%d bytes are paid after Reset", p.spent)
	}
}

func TestPilesAreCleanAndNotOutsized(t *testing.T) {
	for _, n := range []int{1, 16, 17, 64, 65, 5000, largestPile, largestPile + 1, 100_000} {
		if size := pileSize(n); size < n || n > 64 && size > 4*n {
			t.Errorf("%d elements get room for %d", n, size)
		}
		b := &Batch{}
		b.Room(n)
		b.Events = append(b.Events, Event{Data: []byte("x")})
		if cap(b.Events) != pileSize(n) {
			t.Errorf("room for %d, not %d", cap(b.Events), pileSize(n))
		}
		b.Reset()
		if b.Room(n); b.Events[:1][0].Data != nil {
			t.Errorf("%d: an old event is still there", n)
		}
	}
}

func TestAttributesArePaidFor(t *testing.T) {
	p := &purse{left: 1 << 30}
	b := &Batch{Payer: p}
	var lists [][]Attr
	for i := range 3000 {
		lists = append(lists, b.KeepAttrs([]Attr{{Name: fmt.Append(nil, i)}, {Name: []byte("b")}}))
	}
	for i, list := range lists {
		if len(list) != 2 || string(list[0].Name) != fmt.Sprint(i) || string(list[1].Name) != "b" {
			t.Fatalf("list %d is %s", i, list)
		}
	}
	if want := (256 + 1024 + 4096 + 16384) * attrSize; p.spent != want {
		t.Errorf("%d bytes were paid, want %d", p.spent, want)
	}
	p.left = 0
	b.Reset()
	if b.Payer = p; b.KeepAttrs(lists[0]) == nil || b.Unpaid() == nil {
		t.Error("attributes that nobody paid for go unnoticed")
	}
}

func TestWhatIsMadeOnTheWayIsPaidFor(t *testing.T) {
	for name, take := range map[string]func(b *Batch){
		"copies":   func(b *Batch) { b.Copy(make([]byte, 100)) },
		"replaced": func(b *Batch) { b.Replace(0, nil) },
		"letters":  func(b *Batch) { b.SetAside(Letter{}) },
	} {
		p := &purse{left: 1 << 20}
		b := &Batch{Payer: p, Events: make([]Event, 10)}
		if take(b); p.spent == 0 || b.Unpaid() != nil {
			t.Errorf("%s: %d bytes were paid", name, p.spent)
		}
		b = &Batch{Payer: &purse{}, Events: make([]Event, 10)}
		if take(b); b.Unpaid() == nil {
			t.Errorf("%s: a refusal goes unnoticed", name)
		}
		if len(b.Letters) != 0 {
			t.Errorf("%s: a letter that nobody paid for", name)
		}
	}
}

// A batch that goes round again allocates nothing for its events, attributes and copies.
func TestBatchesGoRound(t *testing.T) {
	b, p := &Batch{}, &purse{left: 1 << 30}
	list := make([]Attr, 5)
	if n := testing.AllocsPerRun(50, func() {
		b.Payer = p
		for i := range 1000 {
			if i == cap(b.Events) {
				b.Room(i + 1)
			}
			b.Events = append(b.Events, Event{Attrs: b.KeepAttrs(list)})
		}
		b.Alloc(10)
		b.Reset()
	}); n > 1 && !race.Enabled { // a collection may empty the shelves
		t.Errorf("%v allocations", n)
	}
}
