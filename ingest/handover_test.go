package ingest

import (
	"testing"

	"github.com/valyala/fasthttp"
)

func TestHandover(t *testing.T) {
	var o handover
	type left struct {
		found  *head
		ticket string
		of     fasthttp.RequestHeader
	}
	all := make([]left, len(o.heads)+10)
	leave := func(l *left) {
		l.found = new(head)
		l.ticket = string(o.leave(nil, l.found, &l.of))
	}
	for i := range all {
		leave(&all[i])
	}
	for i := range all {
		l := &all[i]
		if got := o.fetch([]byte(l.ticket), new(fasthttp.RequestHeader)); got != nil {
			t.Errorf("%d is given to another request", i)
		}
		want := l.found
		if i < 10 {
			want = nil // lost
		}
		if got := o.fetch([]byte(l.ticket), &l.of); got != want {
			t.Errorf("%d: got %p, want %p", i, got, want)
		}
		if got := o.fetch([]byte(l.ticket), &l.of); got != nil {
			t.Errorf("%d is given twice", i)
		}
	}
	old := all[20].ticket
	leave(&all[20])
	if got := o.fetch([]byte(old), &all[20].of); got != nil {
		t.Error("an old ticket is good for a new request")
	}
	if got := o.fetch([]byte(all[20].ticket), &all[20].of); got != all[20].found {
		t.Error("a new ticket is not good behind an old one")
	}
}

// A request whose head is lost while its body is waited for is served all the same.
func TestLostHeads(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	text := request11(events, "1\n", ndjson)
	slow := g.dial().send(text[:len(text)-2])
	refused := g.dial().send(request11("/v1/streams/t/events", "1", ndjson))
	refused.answer().want(t, 404, "unknown_stream")
	fill := g.dial()
	for range len(handover{}.heads) {
		fill.send(text).answer().want(t, 200, "")
	}
	slow.send("1\n").answer().want(t, 200, "")
	if got := len(g.data()); got != len(handover{}.heads)+1 {
		t.Errorf("%d events are stored", got)
	}
}
