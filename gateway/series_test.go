package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/gateway/config"
)

// series returns every series of the metrics: its name and labels.
func (in *instance) series() (all []string) {
	in.t.Helper()
	families, err := in.metrics.Gather()
	if err != nil {
		in.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			text := f.GetName()
			for _, l := range m.GetLabel() {
				text += " " + l.GetName() + "=" + l.GetValue()
			}
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}

// Q01, Q03: once every kind of request was there, other keys, paths, agents, names of streams and free text of clients make
// no series more, and nothing of them is in one.
func TestQ01Q03SeriesStayConstant(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"web": {}}
	in := start(t, cfg)
	defer in.end()
	const mark = "zqx"
	round := func(i int) {
		free := fmt.Sprintf("%s%d", mark, i)
		fields := []string{"Content-Type: application/x-ndjson", "Headgate-Key: " + free, "User-Agent: " + free, "Headgate-Source: " + free,
			"X-Request-Id: " + free, "X-Tenant: " + free, fmt.Sprintf("traceparent: 00-0af7651916cd43dd8448eb2%09d-b7ad6b7169203331-01", i)}
		for path, status := range map[string]int{
			"/v1/streams/web/events":                200,
			"/v1/streams/web/events?" + free + "=1": 400,
			"/v1/streams/" + free + "/events":       404,
			"/" + free:                              404,
		} {
			if got, answer := in.postWith(path, `{"`+free+`":1}`+"\n", fields...); got != status {
				t.Fatalf("%s: %d %s", path, got, answer)
			}
		}
		fields[0] = "Content-Type: text/" + free
		if got, answer := in.postWith("/v1/streams/web/events", "1\n", fields...); got != 415 {
			t.Fatalf("%d %s", got, answer)
		}
	}
	for i := range 250 { // enough for keys in all 16 partitions
		round(i)
	}
	before := in.series()
	for i := range 250 {
		round(250 + i)
	}
	after := in.series()
	for _, s := range after {
		if strings.Contains(s, mark) {
			t.Errorf("free text in %s", s)
		}
		if !slices.Contains(before, s) {
			t.Errorf("new: %s", s)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d series, were %d", len(after), len(before))
	}
}
