package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/admin"
)

// A trial tells what becomes of each event and what it costs; it leaves no trace in metrics, streams or logs of failures.
func TestAPluginIsTriedOnEvents(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	in.upload("p", scriptedModule(t))
	at := fmt.Sprintf("http://%s/v1/plugins/p/test", in.addresses.admin)
	status, doc := in.call("POST", at, "text/plain", "kada\nd\nr\nvnew\nt with a secret\n"+strings.Repeat("0\n", 300))
	var r admin.TrialResult
	if err := json.Unmarshal([]byte(doc), &r); err != nil || status != 200 {
		t.Fatalf("%d %v %s", status, err, doc)
	}
	if r.Kept != 302 || r.Filtered != 1 || r.Rejected != 2 || r.Failed != 1 || len(r.Events) != 305 || r.Cost <= 0 || r.Memory < 64<<10 {
		t.Errorf("%+v", r)
	}
	for i, want := range []string{`{"verdict":"kept","key":"ada"}`, `{"verdict":"filtered","key":null}`, `{"verdict":"rejected","key":null,"code":"plugin_rejected","reason":7,`,
		`{"verdict":"kept","key":null,"data":"new"}`, `{"verdict":"rejected","key":null,"code":"plugin_failed","detail":"plugin p failed on this event: TRAP`, `{"verdict":"kept","key":null}`} {
		if !strings.HasPrefix(string(r.Events[i]), want) {
			t.Errorf("event %d: %s", i, r.Events[i])
		}
	}
	if metrics := in.scrape(); strings.Contains(metrics, "headgate_plugin_events_total{") {
		t.Errorf("%s", metrics)
	}
	err := in.PluginLogs(t.Context(), admin.LogQuery{Plugin: "p"}, func(lines []admin.LogLine) error {
		for _, l := range lines {
			if strings.Contains(l.Message, "TRAP") || strings.Contains(l.Message, "secret") {
				t.Errorf("%+v", l)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
