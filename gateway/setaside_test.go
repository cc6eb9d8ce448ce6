package gateway

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
)

// scriptedPlugin uploads the guest that does what an event's first byte says and activates it: 0 keeps, d drops, r
// rejects, t traps, v replaces the event by its rest.
func (in *instance) scriptedPlugin(stream string, names ...string) {
	in.t.Helper()
	wasm, err := os.ReadFile("../plugins/testdata/scripted.wasm")
	if err != nil {
		in.t.Fatal(err)
	}
	for _, name := range names {
		v, _, err := in.Upload(in.t.Context(), name, wasm, nil)
		if err != nil {
			in.t.Fatal(err)
		}
		if _, err := in.Activate(in.t.Context(), stream, admin.Activation{Plugin: name, Digest: v.Digest, OnError: "deadletter"}); err != nil {
			in.t.Fatal(err)
		}
	}
}

// answer is what a producer is told.
type answer struct {
	Accepted, Filtered, Rejected, DeadLettered int
	DeadLetters                                []int
	BatchID                                    string `json:"batch_id"`
	Code, Scope                                string
	Status                                     int
	Limit, Observed                            int64
	Errors                                     []struct {
		Index        int
		Code, Detail string
	}
}

func (in *instance) send(query, mediaType, body string) (status int, a answer) {
	in.t.Helper()
	status, doc := in.call("POST", fmt.Sprintf("http://%s/v1/streams/%s", in.addresses.http, query), mediaType, body)
	if err := json.Unmarshal([]byte(doc), &a); err != nil {
		in.t.Fatalf("%v: %s", err, doc)
	}
	return status, a
}

func (in *instance) call(method, url, mediaType, body string) (int, string) {
	in.t.Helper()
	resp, doc := in.do(method, url, body, "Content-Type: "+mediaType)
	return resp.StatusCode, doc
}

// entry is a line of GET /v1/deadletter.
type entry struct {
	Stream     string
	Number     uint64
	Key        *string
	Data       string
	DataBase64 []byte `json:"data_base64"`
	Attributes map[string]string
}

func (in *instance) deadLetters(stream string) (all []entry) {
	in.t.Helper()
	status, doc := in.call("GET", fmt.Sprintf("http://%s/v1/deadletter/%s?from=start", in.addresses.admin, stream), "", "")
	if status != 200 {
		in.t.Fatalf("%d %s", status, doc)
	}
	for line := range strings.Lines(doc) {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			in.t.Fatalf("%v: %s", err, line)
		}
		all = append(all, e)
	}
	return all
}

// A09: every line can be accounted for from the answer, and the one that a plugin failed on is in the dead letter.
func TestA09EveryLineIsAccountedFor(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	in.scriptedPlugin("web", "rewriter", "scripted")
	if got := in.deadLetters("web"); len(got) != 0 {
		t.Errorf("before anything was set aside: %+v", got)
	}
	status, a := in.send("web/events?ack=delivered", "text/plain", "0good\n\xff\nd\nvt before\nt\nr\n0good\n")
	if status != 207 || a.Accepted != 2 || a.Filtered != 1 || a.Rejected != 2 || a.DeadLettered != 2 {
		t.Fatalf("%d %+v", status, a)
	}
	if len(a.Errors) != 2 || a.Errors[0].Index != 1 || a.Errors[1].Index != 5 {
		t.Errorf("errors %+v", a.Errors)
	}
	got := in.deadLetters("web")
	if len(got) != 2 {
		t.Fatalf("the dead letter has %+v", got)
	}
	byIndex := map[string]entry{got[0].Attributes["index"]: got[0], got[1].Attributes["index"]: got[1]}
	for index, want := range map[string][2]string{"3": {"vt before", "scripted"}, "4": {"t", "rewriter"}} {
		e := byIndex[index]
		if e.Data != want[0] || e.Stream != "web.deadletter" || e.Key != nil {
			t.Errorf("event %s is there as %+v, want the bytes %q", index, e, want[0])
		}
		at := e.Attributes
		if at["batch_id"] != a.BatchID || at["code"] != "plugin_failed" || at["plugin"] != want[1] || at["producer"] != "127.0.0.1" ||
			!strings.HasPrefix(at["digest"], "sha256:") || !strings.Contains(at["reason"], "TRAP") {
			t.Errorf("event %s has attributes %v", index, at)
		}
	}
	if rows := in.rows("web"); len(rows) != 2 {
		t.Errorf("the stream holds %d events, want 2", len(rows))
	}
	if rows := in.rows("web.deadletter"); len(rows) != 2 { // L11
		t.Errorf("read as a stream it holds %d events, want 2", len(rows))
	}
	metrics, err := in.metrics.Gather()
	if err != nil || !strings.Contains(fmt.Sprint(metrics), `headgate_deadletter_events_total`) {
		t.Errorf("no metric for it (%v)", err)
	}
}

// G04: whatever the bytes, they are there as they came, and the entries around them can be read.
func TestG04DeadLettersOfAnyBytes(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	in.scriptedPlugin("web", "scripted")
	for _, data := range []string{"t1", "t\xff\xfe\n\x00", "t3"} {
		if status, a := in.send("web/events", "application/octet-stream", data); status != 200 || a.DeadLettered != 1 {
			t.Errorf("%d %+v", status, a)
		}
	}
	got := in.deadLetters("web")
	if len(got) != 3 || got[0].Data != "t1" || string(got[1].DataBase64) != "t\xff\xfe\n\x00" || got[2].Data != "t3" {
		t.Errorf("%+v", got)
	}
}

func TestStrictRefusesWhatWouldBeDeadLettered(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	in.scriptedPlugin("web", "scripted")
	status, a := in.send("web/events?mode=strict", "text/plain", "0good\nt\n")
	if status != 422 || a.Code != "strict_rejected" || len(a.Errors) != 1 || a.Errors[0].Index != 1 || a.Errors[0].Code != "plugin_failed" {
		t.Errorf("%d %+v", status, a)
	}
	if a, b := in.rows("web"), in.deadLetters("web"); len(a)+len(b) != 0 {
		t.Errorf("stored %+v and %+v", a, b)
	}
}

// Only the gateway writes a dead letter.
func TestDeadLettersAreNotWritable(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	in.scriptedPlugin("web", "scripted")
	for range 2 { // before it is there, and after
		in.want(404, "bad_stream_name", "web.deadletter", "{}")
		_, _, err := in.SetStream(t.Context(), "web.deadletter", json.RawMessage(`{}`), admin.Match{})
		wantCode(t, err, event.BadStreamName)
		wantCode(t, in.DeleteStream(t.Context(), "web.deadletter", admin.Match{}), event.BadStreamName)
		_, err = in.Activate(t.Context(), "web.deadletter", admin.Activation{Plugin: "scripted"})
		wantCode(t, err, event.BadStreamName)
		_, err = in.Deactivate(t.Context(), "web.deadletter", "scripted")
		wantCode(t, err, event.BadStreamName)
		in.send("web/events", "text/plain", "t")
	}
	if len(in.deadLetters("web")) != 2 {
		t.Error("the dead letter does not hold two entries")
	}
	for path, code := range map[string]string{"nobody": "unknown_stream", "web.deadletter": "bad_stream_name", "No": "bad_stream_name"} {
		if status, doc := in.call("GET", fmt.Sprintf("http://%s/v1/deadletter/%s", in.addresses.admin, path), "", ""); status != 404 || !strings.Contains(doc, code) {
			t.Errorf("%s: %d %s, want %s", path, status, doc, code)
		}
	}
}

// Who waits for the first letter gets it.
func TestDeadLetterIsFollowedFromItsBeginning(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	in.scriptedPlugin("web", "scripted")
	enough, begun := fmt.Errorf("enough"), make(chan struct{})
	got := make(chan string, 1)
	go func() {
		first := true
		got <- fmt.Sprint(in.ReadRows(t.Context(), admin.Query{Stream: "web.deadletter", Partition: admin.AllPartitions, Now: true, Follow: true}, func(rows []admin.Row) error {
			if first {
				first = false
				close(begun)
				return nil
			}
			return fmt.Errorf("%w: %s", enough, rows[0].Data)
		}))
	}()
	<-begun
	in.send("web/events", "text/plain", "t first")
	if text := <-got; text != "enough: t first" {
		t.Error(text)
	}
}

// A dead letter is there after a restart and goes on, and so does one that was there when its stream was deleted.
func TestDeadLettersSurviveRestarts(t *testing.T) {
	cfg := zero(t)
	in := start(t, cfg)
	in.scriptedPlugin("web", "scripted")
	in.send("web/events", "text/plain", "t1")
	in.end()

	in = start(t, cfg)
	in.send("web/events", "text/plain", "t2")
	got := in.deadLetters("web")
	if len(got) != 2 || got[0].Number != 1 || got[1].Number != 2 || got[1].Data != "t2" {
		t.Errorf("%+v", got)
	}
	if err := in.DeleteStream(t.Context(), "web", admin.Match{}); err != nil {
		t.Fatal(err)
	}
	in.end()

	in = start(t, cfg)
	defer in.end()
	if got := in.deadLetters("web"); len(got) != 2 {
		t.Errorf("of a deleted stream %d letters are left of 2", len(got))
	}
	d, err := in.Stream(t.Context(), "web.deadletter")
	if err != nil || d.Managed != "gateway" {
		t.Errorf("%+v, %v", d, err)
	}
}

// What the dead letter can't take is refused, by its index: nothing is lost silently.
func TestWithoutItsDeadLetterAnEventIsRefused(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	in.scriptedPlugin("web", "scripted")
	in.burying.Lock()
	in.buried = true
	in.burying.Unlock()
	status, a := in.send("web/events", "text/plain", "0\nt\n0\n")
	if status != 207 || a.Accepted != 2 || a.Rejected != 1 || a.DeadLettered != 0 || len(a.Errors) != 1 || a.Errors[0].Index != 1 ||
		!strings.Contains(a.Errors[0].Detail, "the dead letter did not take it") {
		t.Errorf("%d %+v", status, a)
	}
}

// Every stream can have its dead letter.
func TestRoomForAllDeadLetters(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	for i := range config.MaxStreams {
		stream := fmt.Sprint("s", i)
		in.scriptedPlugin(stream, stream) // of its own: one version is not replaced so often in so short a time
		if status, a := in.send(stream+"/events", "text/plain", "t\n0\n"); status != 200 || a.DeadLettered != 1 || a.Accepted != 1 {
			t.Fatalf("%s: %d %+v", stream, status, a)
		}
	}
}
