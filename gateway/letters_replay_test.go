package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
)

// order replays or purges letters of web and returns the last line of the answer.
func (in *instance) order(body string) (sums map[string]int, code string) {
	in.t.Helper()
	status, doc := in.call("POST", fmt.Sprintf("http://%s/v1/deadletter/web", in.addresses.admin), "application/json", body)
	lines := strings.Split(strings.TrimSpace(doc), "\n")
	var last struct {
		Sums        map[string]int
		Error, Code string
		Done        bool
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || status == 200 != last.Done {
		in.t.Fatalf("%s: %d %s (%v)", body, status, doc, err)
	}
	return last.Sums, last.Error + last.Code
}

func (in *instance) wantOrder(body string, want map[string]int) {
	in.t.Helper()
	if got, code := in.order(body); code != "" || fmt.Sprint(got) != fmt.Sprint(want) {
		in.t.Errorf("%s: %v %s, want %v", body, got, code, want)
	}
}

func sums(selected, replayed, filtered, failed, left int) map[string]int {
	return map[string]int{"selected": selected, "replayed": replayed, "filtered": filtered, "failed": failed, "left": left}
}

// attribute returns the attribute of a row, empty for none.
func attributeOf(r *admin.Row, name string) string {
	for _, a := range r.Attrs {
		if string(a.Name) == name {
			return string(a.Value)
		}
	}
	return ""
}

func withLetters(t *testing.T) *instance {
	t.Helper()
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"web": {Key: config.Key{JSON: "/k"}, ID: config.ID{JSON: "/id"}, Partitions: config.Partitions{Max: 4}}}
	in := start(t, cfg)
	in.scriptedPlugin("web", "scripted")
	return in
}

// What a plugin failed on goes the way of its stream again when it can: as it came, once, whatever its id.
func TestLettersAreTakenAgain(t *testing.T) {
	in := withLetters(t)
	defer in.end()
	resp, _ := in.once("web/events", `true`+"\n"+`true`+"\n", "Content-Type", "application/x-ndjson", "Headgate-Key", "of the request", "Headgate-Source", "meter 7")
	if resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	in.send("web/events", "text/plain", "tplain\n")
	if n := len(in.deadLetters("web")); n != 3 {
		t.Fatalf("%d letters", n)
	}
	in.wantOrder(`{"action":"replay","all":true,"dry_run":true}`, sums(3, 0, 0, 3, 0))
	if _, err := in.Deactivate(t.Context(), "web", "scripted"); err != nil {
		t.Fatal(err)
	}
	in.wantOrder(`{"action":"replay","all":true,"dry_run":true}`, sums(3, 3, 0, 0, 0))
	if rows := in.rows("web"); len(rows) != 0 {
		t.Fatalf("a trial stored %+v", rows)
	}
	in.wantOrder(`{"action":"replay","all":true,"limit":1}`, sums(1, 1, 0, 0, 0))
	in.wantOrder(`{"action":"replay","all":true}`, sums(2, 2, 0, 0, 0))
	in.wantOrder(`{"action":"replay","all":true}`, sums(0, 0, 0, 0, 0))
	if left := in.deadLetters("web"); len(left) != 0 {
		t.Errorf("still listed: %+v", left)
	}
	seen := map[string]bool{}
	for _, r := range in.rows("web") {
		seen[attributeOf(&r, replayAttr)] = true
		switch string(r.Data) {
		case "true":
			if !r.HasKey || string(r.Key) != "of the request" {
				t.Errorf("key %q", r.Key)
			}
		case "tplain":
			if r.HasKey {
				t.Errorf("key %q", r.Key)
			}
		default:
			t.Errorf("%+v", r)
		}
		if attributeOf(&r, triesAttr) != "1" {
			t.Errorf("%+v", r.Attrs)
		}
	}
	if len(seen) != 3 {
		t.Errorf("replayed were %v", seen)
	}
}

// A letter keeps its key and its id, which the window knows already.
func TestReplayKeepsKeyAndID(t *testing.T) {
	in := withLetters(t)
	defer in.end()
	in.send("web/events", "application/x-ndjson", `{"k":"a","id":"1"}`+"\n") // not of the script: it fails on it
	if got := in.deadLetters("web"); len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	if _, err := in.Deactivate(t.Context(), "web", "scripted"); err != nil {
		t.Fatal(err)
	}
	in.wantOrder(`{"action":"replay","letters":["1"]}`, sums(1, 1, 0, 0, 0))
	rows := in.rows("web")
	if len(rows) != 1 || string(rows[0].Key) != "a" || string(rows[0].ID) != "1" || string(rows[0].Data) != `{"k":"a","id":"1"}` {
		t.Errorf("%+v", rows)
	}
}

// What fails again is a new letter that knows how often; what is refused stays what it is.
func TestReplayThatFailsAgain(t *testing.T) {
	in := withLetters(t)
	defer in.end()
	in.send("web/events", "text/plain", "t1\nt2\n")
	for try := 1; try <= 2; try++ {
		in.wantOrder(`{"action":"replay","all":true}`, sums(2, 0, 0, 2, 0))
		got := in.deadLetters("web")
		if len(got) != 2 {
			t.Fatalf("try %d: %+v", try, got)
		}
		for i, e := range got {
			if at := e.Attributes; at["tries"] != fmt.Sprint(try) || !strings.HasSuffix(at["replay_of"], fmt.Sprint(".", try*2-1+i)) || at["producer"] != "127.0.0.1" || e.Data != fmt.Sprint("t", i+1) {
				t.Errorf("try %d: %+v", try, e)
			}
			if key, has := e.Attributes["request_key"]; has {
				t.Errorf("try %d: its request had no key, and now has %q", try, key)
			}
		}
	}
	v, err := in.Plugin(t.Context(), "scripted")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Activate(t.Context(), "web", admin.Activation{Plugin: "scripted", Digest: v.Versions[0].Digest, OnError: "reject"}); err != nil {
		t.Fatal(err)
	}
	in.wantOrder(`{"action":"replay","all":true}`, sums(2, 0, 0, 0, 2))
	if got := in.deadLetters("web"); len(got) != 2 || got[0].Number != 5 {
		t.Errorf("%+v", got)
	}
	in.wantOrder(`{"action":"purge","from":6,"dry_run":true}`, map[string]int{"selected": 1, "purged": 0, "left": 1})
	in.wantOrder(`{"action":"purge","from":6}`, map[string]int{"selected": 1, "purged": 1, "left": 0})
	if got := in.deadLetters("web"); len(got) != 1 || got[0].Number != 5 {
		t.Errorf("%+v", got)
	}
}

// A replay that was cut off after its letters were handed over, and before that was noted, doubles none of them: not those in
// the stream, nor those that failed again; and those that never got anywhere are replayed.
func TestReplayThatWasCutOff(t *testing.T) {
	in := withLetters(t)
	defer in.end()
	in.send("web/events", "text/plain", "t1\n")
	in.send("web/events", "text/plain", "t2\n")
	in.wantOrder(`{"action":"replay","letters":["2"]}`, sums(1, 0, 0, 1, 0)) // now number 3
	if _, err := in.Deactivate(t.Context(), "web", "scripted"); err != nil {
		t.Fatal(err)
	}
	in.wantOrder(`{"action":"replay","letters":["1"]}`, sums(1, 1, 0, 0, 0))
	book, err := in.openBook(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	// As it would be had nobody noted what became of these two, and of 3, which was about to be handed over.
	doc := fmt.Sprintf(`{"settled":{},"handed":{"letters":{"%[1]s":[[1,3]]},"after":[0]}}`, in.folder.ID)
	if _, err := in.store.Letters.Write(t.Context(), "web", []byte(doc), book.revision); err != nil {
		t.Fatal(err)
	}
	in.wantOrder(`{"action":"replay","all":true}`, sums(1, 1, 0, 0, 0))
	if rows := in.rows("web"); len(rows) != 2 {
		t.Errorf("%+v", rows)
	}
	if got := in.deadLetters("web"); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// One at a time changes what is settled of a stream; a stop ends it, and nothing is begun after that.
func TestReplaysTakeTurns(t *testing.T) {
	var r replays
	a, ctx, err := r.begin(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = r.begin(t.Context(), "web")
	wantCode(t, err, event.ReplayRunning)
	b, _, err := r.begin(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-ctx.Done(); a.end(); b.end() }()
	r.close()
	_, _, err = r.begin(t.Context(), "web")
	wantCode(t, err, event.Draining)
}

// What is settled goes from the disk, but for the last run, and each call of the dead letter answers as described.
func TestSettledLettersGo(t *testing.T) {
	in := withLetters(t)
	defer in.end()
	for i := range 5 {
		in.send("web/events", "text/plain", fmt.Sprintf("t%d\n", i))
	}
	d := describe(t, in)
	for path, at := range map[string]string{"": "/v1/deadletter/{stream}", "/3": "/v1/deadletter/{stream}/{letter}"} {
		resp, body := in.do("GET", fmt.Sprintf("http://%s/v1/deadletter/web%s", in.addresses.admin, path), "")
		d.check("GET", at, resp, []byte(body))
		if resp.StatusCode != 200 || !strings.Contains(body, fmt.Sprintf(`"letter":"%s.3"`, in.folder.ID)) {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	}
	in.wantOrder(`{"action":"purge","letters":["2"]}`, map[string]int{"selected": 1, "purged": 1, "left": 0})
	if rows := in.rows("web.deadletter"); len(rows) != 5 {
		t.Errorf("%d are stored, and number 1 is open", len(rows))
	}
	in.wantOrder(`{"action":"purge","to":3}`, map[string]int{"selected": 2, "purged": 2, "left": 0})
	if rows := in.rows("web.deadletter"); len(rows) != 2 || rows[0].Number != 4 {
		t.Errorf("%+v", rows)
	}
	in.wantOrder(`{"action":"purge","all":true}`, map[string]int{"selected": 2, "purged": 2, "left": 0})
	if rows := in.rows("web.deadletter"); len(rows) != 1 {
		t.Errorf("%+v", rows)
	}
	book, err := in.openBook(t.Context(), "web")
	if err != nil || book.Settled[in.folder.ID].Ranges() != 1 {
		t.Errorf("%+v %v", book, err)
	}
	if status, body := in.call("GET", fmt.Sprintf("http://%s/v1/deadletter/web?settled=true", in.addresses.admin), "", ""); status != 200 || !strings.Contains(body, `"settled":true`) {
		t.Errorf("%d %s", status, body)
	}
}

// A stop ends a replay behind the batch on its way: what was replayed is noted, and the rest is open at the next start.
func TestAStopEndsAReplay(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"web": {Partitions: config.Partitions{Max: 4}}}
	in := start(t, cfg)
	in.scriptedPlugin("web", "scripted")
	var body strings.Builder
	const letters = 1000
	for i := range letters {
		fmt.Fprintf(&body, "t%d\n", i)
	}
	in.send("web/events", "text/plain", body.String())
	if _, err := in.Deactivate(t.Context(), "web", "scripted"); err != nil {
		t.Fatal(err)
	}
	begun, ended := make(chan struct{}), make(chan admin.ReplaySums)
	go func() {
		once := sync.OnceFunc(func() { close(begun) })
		tell := func(admin.ReplaySums) error { once(); return nil }
		got, err := in.Replay(t.Context(), "web", admin.LetterOrder{Rate: batchLetters}, tell) // a batch a second: it does not come to its end
		if err == nil {
			t.Error("it ended as if nothing had happened")
		}
		ended <- got
	}()
	<-begun
	go in.stop()
	first := <-ended
	in.end()
	if first.Replayed == 0 || first.Replayed == letters || first.Left != letters-first.Replayed {
		t.Errorf("%+v", first)
	}
	in = start(t, cfg)
	defer in.end()
	in.wantOrder(`{"action":"replay","all":true,"rate":100000}`, sums(int(first.Left), int(first.Left), 0, 0, 0))
	if rows := in.rows("web"); len(rows) != letters {
		t.Errorf("%d events of %d letters", len(rows), letters)
	}
}
