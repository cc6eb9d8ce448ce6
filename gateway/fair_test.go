package gateway

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
)

// numbered returns n events of a key with ids of their own.
func numbered(prefix, key string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"id\":\"%s-%d\",\"k\":%q}\n", prefix, i, key)
	}
	return b.String()
}

func (in *instance) strict(want int, body string) {
	in.t.Helper()
	if status, a := in.send("web/events?mode=strict", "application/x-ndjson", body); status != want {
		in.t.Errorf("%d %+v, want %d", status, a, want)
	}
}

// K12: the rate of a key is spent by what is stored: not by repetitions, and not by a request of which nothing is.
func TestK12OnlyWhatIsStoredSpendsTheRate(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"web": {Key: config.Key{JSON: "/k"}, ID: config.ID{JSON: "/id"},
		Rate: config.StreamRate{Key: few(36)}}}
	in := start(t, cfg)
	defer in.end()
	in.want(200, `"accepted":36`, "web", numbered("a", "A", 36))
	in.want(200, `"rejected":0,"duplicates":36`, "web", numbered("a", "A", 36)) // the answer was lost
	in.want(200, `"accepted":9,"filtered":0,"rejected":0,"duplicates":36`, "web", numbered("a", "A", 36)+numbered("b", "B", 9))

	for range 3 { // nothing of it is stored, and C keeps its rate
		in.strict(429, numbered("c", "C", 36)+numbered("d", "A", 36))
	}
	in.strict(200, numbered("c", "C", 36))

	status, doc := in.post("web", numbered("e", "C", 20)+numbered("e", "C", 20)) // of each id two, over the rate
	if status != 429 || !strings.Contains(doc, `"rejected":40`) || !strings.Contains(doc, `"code":"key_rate"`) || strings.Contains(doc, string(event.SameIDFailed)) {
		t.Errorf("%d %s", status, doc)
	}
	in.want(200, `"accepted":10`, "web", numbered("e", "E", 10)) // and their ids are free
	if n := len(in.rows("web")); n != 36+9+36+10 {
		t.Errorf("%d events are stored", n)
	}
}

// Of events with one id, as many count as dead-lettered as there are entries; one that was not tried itself says so and
// can be sent again.
func TestDeadLetteredIsWhatIsInTheDeadLetter(t *testing.T) {
	letters := &letterBox{}
	s := scriptStream(t, letters)
	defer s.stop()
	s.backend.Judge(refuseBad(t))
	const requests = 20
	batches := make([]*event.Batch, requests)
	var all sync.WaitGroup
	for i := range batches {
		batches[i] = identified(event.Durable, "x bad", fmt.Sprintf("y%d good", i), "x good")
		all.Go(func() {
			if err := s.Accept(context.Background(), batches[i]); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	counted := 0
	for _, b := range batches {
		counted += b.Counts().DeadLettered
		for _, e := range b.Errors {
			if e.Code != event.SameIDFailed && e.Code != event.BackendRefused {
				t.Errorf("%+v", e)
			}
		}
	}
	if counted != len(letters.kept) {
		t.Errorf("%d events are called dead-lettered, the dead letter has %d", counted, len(letters.kept))
	}
	again := identified(event.Durable, "x good")
	if err := s.Accept(t.Context(), again); err != nil || again.Counts().Accepted+again.Counts().Duplicates != 1 || s.copies(t)["x"] != 1 {
		t.Errorf("%v %+v, %d copies", err, again.Counts(), s.copies(t)["x"])
	}
}
