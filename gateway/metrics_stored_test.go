package gateway

import (
	"testing"

	"github.com/headgate-io/headgate/gateway/config"
)

// TestHowFullAStreamIs is in the metrics and in the list of streams, not in its definition.
func TestHowFullAStreamIs(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	if status, doc := in.call("POST", in.events("web?ack=delivered"), "application/json", `{"a":1}`); status != 200 {
		t.Fatalf("%d %s", status, doc)
	}
	if err := in.stores.buses[config.LocalBackend].keeper.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, err := in.Streams(t.Context())
	if err != nil || len(all) != 1 || all[0].Stored == nil || all[0].Stored.Bytes < 50 || all[0].Stored.Limit < 1<<20 {
		t.Fatalf("%+v, %v", all, err)
	}
	if d, err := in.Stream(t.Context(), "web"); err != nil || d.Stored != nil {
		t.Errorf("%+v, %v", d, err)
	}
	found := map[string]float64{}
	families, err := in.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if len(m.Label) == 1 && m.Label[0].GetValue() == "web" {
				found[f.GetName()] = m.GetGauge().GetValue()
			}
		}
	}
	if found["headgate_stored_bytes"] != float64(all[0].Stored.Bytes) || found["headgate_stored_bytes_limit"] != float64(all[0].Stored.Limit) {
		t.Errorf("%v, the list has %+v", found, all[0].Stored)
	}
}
