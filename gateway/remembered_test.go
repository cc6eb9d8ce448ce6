package gateway

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/internal/window"
)

// An event that neither the backend nor the dead letter takes may be sent again, whoever sent it and named its source,
// though it was durable for a while.
func TestDroppedEventsCanBeSentAgain(t *testing.T) {
	s := scriptStream(t, nil)
	defer s.stop()
	now := time.Now()
	tokens := &config.Auth{Tokens: []config.Token{{ID: "alice"}, {ID: "bob"}}}
	for name, c := range map[string]struct {
		caller, source string
		r              forward.Refused
	}{
		"nobody":     {"", "p", forward.Refused{Producer: "p", Event: event.Event{ID: []byte("x")}}},
		"a caller":   {"bob", "p", forward.Refused{Producer: "p", Event: event.Event{ID: []byte("x")}}},
		"CloudEvent": {"alice", "/s", forward.Refused{Producer: "p", Event: event.Event{ID: []byte("x"), Attrs: []event.Attr{{Name: []byte("source"), Value: []byte("/s")}}}}},
	} {
		id := s.secret.Namer([]byte(c.caller), []byte(c.source)).Of([]byte("x"))
		other := s.secret.Namer([]byte(c.caller), []byte(c.source)).Of([]byte("y"))
		claim, _ := s.ids.Claim([]window.Ref{{ID: id}, {ID: other, Place: 1}}, 1, now)
		claim.Settle(nil, nil, now)
		if s.release(&c.r, tokens); s.ids.Known(id, now) || !s.ids.Known(other, now) {
			t.Errorf("%s: known %v, the other %v", name, s.ids.Known(id, now), s.ids.Known(other, now))
		}
	}
}
