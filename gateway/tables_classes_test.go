package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/gateway/config"
)

// A request may ask for more order than its stream keeps, and not for less.
func TestHeadgateOrderingAsksForMoreOrder(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{}
	for _, o := range []string{"strict", "source", "none"} {
		cfg.Streams[o] = config.Stream{Ordering: o, Key: config.Key{JSON: "/key"}}
	}
	in := start(t, cfg)
	defer in.end()
	own := map[string]bool{}
	for stream, asked := range map[string]map[string]string{
		"strict": {"": "", "strict": "", "source": "looser_ordering", "none": "looser_ordering", "Strict": "bad_parameter"},
		"source": {"": "", "strict": "", "source": "", "none": "looser_ordering", "some": "bad_parameter"},
		"none":   {"": "", "strict": "", "source": "", "none": ""},
	} {
		for ordering, code := range asked {
			fields := []string{"Content-Type: application/x-ndjson"}
			if ordering != "" {
				fields = append(fields, "Headgate-Ordering: "+ordering)
			}
			resp, doc := in.do("POST", in.events(stream), `{"key":"a"}`, fields...)
			var problem struct{ Code string }
			if err := json.Unmarshal([]byte(doc), &problem); err != nil || problem.Code != code {
				t.Errorf("%s, %q: %d %s", stream, ordering, resp.StatusCode, doc)
			}
			place, err := in.Explain(t.Context(), stream, []byte("a"), nil, ordering)
			if code != "" {
				if err == nil {
					t.Errorf("%s, %q: %s", stream, ordering, place)
				}
				continue
			}
			var at shownPlace
			if err := json.Unmarshal(place, &at); err != nil {
				t.Fatal(err)
			}
			want := ordering
			if want == "" {
				want = stream
			}
			if at.Ordering != want {
				t.Errorf("%s, %q: %s", stream, ordering, place)
			}
			own[fmt.Sprint(stream, want, at.Hash)] = true
		}
	}
	if resp, doc := in.do("POST", in.events("none"), `{"key":"a"}`, "Content-Type: application/x-ndjson", "Headgate-Ordering: "); resp.StatusCode != 400 || !strings.Contains(doc, "bad_parameter") {
		t.Errorf("an empty one: %d %s", resp.StatusCode, doc)
	}
	if len(own) != 1+2+3 {
		t.Errorf("key spaces: %v", own)
	}
}

// Keys whose requests ask for an order keep it in a stream that has none, while their slots move to partitions that come; and one
// that is heavy is split by source, or not at all.
func TestAskedOrderIsKeptInAStreamWithoutOne(t *testing.T) {
	for _, asks := range []string{"strict", "source"} {
		t.Run(asks, func(t *testing.T) {
			t.Parallel()
			cfg := zero(t)
			cfg.Streams = map[string]config.Stream{"web": elastic("none")}
			in := start(t, cfg)
			defer in.end()
			f := in.floodEvery("web", asks, 100*time.Millisecond)
			grown := in.untilTable("web", "grown", func(table shownTable) bool {
				return hasGrown(table) && (asks == "strict" || isSplit(table))
			})
			f.end()
			f.compare(f.stored(), true)
			for _, s := range grown.Splits {
				if asks == "strict" || s.By != "source" {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}
