package gateway

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/internal/journal"
	"github.com/headgate-io/headgate/internal/logfolder"
	"github.com/headgate-io/headgate/internal/settings"
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

// A log of a version that made identities in another way is of no use; at the first start behind it the ids are read from stored frames.
func TestIDsBehindALogOfAnEarlierVersion(t *testing.T) {
	cfg := zero(t)
	cfg.Drain.Timeout = settings.Duration(100e6)
	cfg.Backends["away"] = config.Backend{Webhook: &config.Webhook{Nodes: []string{"http://127.0.0.1:9/"}}} // so all frames stay in the spool
	cfg.Streams = map[string]config.Stream{"s": {ID: config.ID{JSON: "/id"}, Backend: "away"}}
	var body strings.Builder
	for i := range 20 {
		fmt.Fprintf(&body, "{\"id\":%d}\n", i)
	}
	in := start(t, cfg)
	in.want(200, `"accepted":20`, "s", body.String())
	stop := func() {
		in.stop()
		<-in.done // what is left in the spool it says as an error
	}
	stop()
	asOfAnEarlierVersion(t, in.folder.WindowFolder("ids", "s"))
	in = start(t, cfg)
	if r := newRecollection((*in.streams.Load())["s"], in.owners, time.Now()); time.Since(r.logged) < time.Duration(cfg.Streams["s"].ID.Window.Age) {
		t.Errorf("frames are read from %v on", r.logged)
	}
	in.want(200, `"duplicates":20`, "s", body.String())
	stop()
	in = start(t, cfg)
	defer stop()
	if (*in.streams.Load())["s"].ids.Unread() {
		t.Error("the log is of no use any more")
	}
	in.want(200, `"duplicates":20`, "s", body.String())
}

// asOfAnEarlierVersion gives the records of ids in a log the kind that they had.
func asOfAnEarlierVersion(t *testing.T, path string) {
	t.Helper()
	const now, before = 6, 2
	var all [][]byte
	ids := 0
	if _, _, err := journal.Open(journal.Deps{Files: logfolder.At(path)}, func(record []byte) {
		record = bytes.Clone(record)
		if record[0] == now {
			record[0] = before
			ids++
		}
		all = append(all, record)
	}); err != nil {
		t.Fatal(err)
	}
	if ids == 0 {
		t.Fatal("the log has no ids")
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	log, _, err := journal.Open(journal.Deps{Files: logfolder.At(path)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range all {
		log.Append(record)
	}
	if log.Flush(); log.Stats().Failed > 0 {
		t.Fatal("the log was not written")
	}
}
