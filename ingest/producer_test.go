package ingest

import (
	"testing"

	"github.com/headgate-io/headgate/sdk/session"
)

// F49: a session is the same producer wherever its client comes from, or what was stored before a kill would not be known when it
// is sent again from another address. Where events bring ids, these are known by the address, over HTTP as well.
func TestF49SessionsAreProducers(t *testing.T) {
	for name, c := range map[string]struct {
		identified bool
		source     string
		want       string
	}{
		"by itself":  {false, "", "a"},
		"named":      {false, "me", "me"},
		"identified": {true, "", "10.0.1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			inSession(t, &fakeStream{settings: Settings{Identified: c.identified}}, func(t *testing.T, g *sessionGate, cl *rawClient) {
				h := hello("a")
				h.Source = c.source
				cl.welcome(h)
				cl.events(1, "1")
				cl.until(isAck(session.Durable, 1))
				if got := g.take(); len(got) != 1 || got[0].producer != c.want {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}
