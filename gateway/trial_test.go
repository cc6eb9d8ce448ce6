package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
)

// tried is what a dry run says.
type tried struct {
	Status, Accepted, Filtered, Rejected, Duplicates, DeadLettered int
	Unmade                                                         bool
	Events                                                         []struct {
		Verdict, By, Code, Detail, Hash, ID string
		Key                                 *string
		KeyFrom                             string `json:"key_from"`
		Slot, Partition                     *int32
	}
}

func (in *instance) try(query, body string, header ...string) (doc tried) {
	in.t.Helper()
	resp, text := in.once(query, body, header...)
	if resp.StatusCode != 200 {
		in.t.Fatalf("%d %s", resp.StatusCode, text)
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		in.t.Fatal(err)
	}
	return doc
}

// brief is the verdict, what decided, the code, and the key with where it is from.
func (d *tried) brief() (all []string) {
	for _, e := range d.Events {
		key := "-"
		if e.Key != nil {
			key = *e.Key
		}
		all = append(all, fmt.Sprintf("%s|%s|%s|%s|%s", e.Verdict, e.By, e.Code, key, e.KeyFrom))
	}
	return all
}

func (in *instance) wantTried(doc tried, want ...string) {
	in.t.Helper()
	got := doc.brief()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		in.t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A dry run says what would happen, and then it happens just so; until then nothing did.
func TestDryRunForetells(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{
		"s": {Key: config.Key{JSON: "/k"}, ID: config.ID{JSON: "/id"}},
		"p": {Key: config.Key{Header: "X-Key"}},
	}
	in := start(t, cfg)
	defer in.end()
	body := `{"id":"1","k":"a"}` + "\n" + `{"id":"2","k":{}}` + "\n" + `{"id":"1","k":"b"}` + "\n" + `{"id":[],"k":1}` + "\n" + `{"k":null}` + "\n" + "{bad\n" + `{"id":"3","k":7}` + "\n"
	want := []string{
		"accepted||||a|json /k", "rejected|key|key_not_scalar|-|", "duplicate|id||b|json /k", "rejected|id|id_not_scalar|-|",
		"accepted|||h|Headgate-Key", "rejected|syntax|malformed_json|-|", "accepted|||7|json /k",
	}
	want[0] = "accepted|||a|json /k"
	for range 2 {
		doc := in.try("s/events?dry_run=true", body, "Headgate-Key", "h", "Idempotency-Key", "once")
		in.wantTried(doc, want...)
		if doc.Status != 207 || doc.Events[0].ID != "1" || doc.Events[0].Partition == nil || doc.Events[0].Slot == nil {
			t.Errorf("%+v", doc)
		}
	}
	if rows := in.rows("s"); len(rows) != 0 {
		t.Fatalf("a dry run stored %+v", rows)
	}
	foretold := in.try("s/events?dry_run=true", body, "Headgate-Key", "h")
	resp, text := in.once("s/events", body, "Headgate-Key", "h", "Idempotency-Key", "once")
	if resp.StatusCode != 207 || resp.Header.Get("Idempotency-Replayed") != "" || !strings.Contains(text, `"accepted":3,"filtered":0,"rejected":3,"duplicates":1`) {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	places := map[string]int32{}
	for _, r := range in.rows("s") {
		places[string(r.Key)] = r.Partition
	}
	for _, e := range foretold.Events {
		if e.Verdict != "accepted" {
			continue
		}
		if got, ok := places[*e.Key]; !ok || got != *e.Partition {
			t.Errorf("key %s was to go to %d and is in %d (%v)", *e.Key, *e.Partition, got, ok)
		}
		_, text := in.call("GET", fmt.Sprintf("http://%s/v1/streams/s/explain?key=%s", in.addresses.admin, *e.Key), "", "")
		if !strings.Contains(text, fmt.Sprintf(`"hash":%q,"slot":%d,`, e.Hash, *e.Slot)) || !strings.Contains(text, fmt.Sprintf(`"partition":%d,`, *e.Partition)) ||
			!strings.Contains(text, "bits of the hash are slot") {
			t.Errorf("explain: %s", text)
		}
	}
	_, text = in.call("GET", fmt.Sprintf("http://%s/v1/streams/s/explain", in.addresses.admin), "", "")
	if !strings.Contains(text, `"key":null`) || !strings.Contains(text, `"partition":null`) {
		t.Errorf("explain: %s", text)
	}
	in.wantTried(in.try("s/events?dry_run=true", `{"id":"1"}`), "duplicate|id||-|")

	in.scriptedPlugin("p", "script", "second")
	in.wantTried(in.try("p/events?dry_run=true", "0keep\nddrop\nrreject\nttrap\n", "Content-Type", "text/plain", "X-Key", "x"),
		"accepted|||x|header x-key", "filtered|plugin script||-|", "rejected|plugin script|plugin_rejected|-|", "deadlettered|plugin script|plugin_failed|-|")
	if rows := in.rows("p" + event.DeadLetterSuffix); len(rows) != 0 {
		t.Errorf("a dry run buried %+v", rows)
	}
	if doc := in.try("p/events?dry_run=true&mode=strict", "ttrap\n", "Content-Type", "text/plain"); doc.Status != 422 {
		t.Errorf("strict: %+v", doc)
	}
}

func TestDryRunMakesNoStream(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	doc := in.try("web/events?dry_run=true", "{\"a\":1}\n{bad\n", "Headgate-Key", "h")
	in.wantTried(doc, "accepted|||h|Headgate-Key", "rejected|syntax|malformed_json|-|")
	if !doc.Unmade || doc.Events[0].Partition != nil || doc.Events[0].Hash != "" {
		t.Errorf("%+v", doc)
	}
	if all, err := in.Streams(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v %v", all, err)
	}
}
