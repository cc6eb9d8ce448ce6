package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/gateway/config"
)

// A read that follows and ends has all that was acknowledged before it began, however soon it ends: of all partitions, of one, and
// of what is new alone.
func TestAReadThatEndsHasAllThatWasTaken(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"web": {Partitions: config.Partitions{Max: 4}, Key: config.Key{JSON: "/k"}}}
	in := start(t, cfg)
	defer in.end()
	read := func(query string) int {
		_, doc := in.call("GET", fmt.Sprintf("http://%s/v1/streams/web/events?follow=true&idle=1ms&%s", in.addresses.admin, query), "", "")
		return strings.Count(doc, `"data":`)
	}
	if n := read("from=start"); n != 0 {
		t.Errorf("%d events of none", n)
	}
	for round := range 3 {
		var body strings.Builder
		for i := range 100 {
			fmt.Fprintf(&body, "{\"k\":\"%d\"}\n", i)
		}
		in.want(200, `"accepted":100`, "web", body.String())
		if n := read("from=start"); n != 100*(round+1) {
			t.Errorf("%d events after %d were acknowledged", n, 100*(round+1))
		}
	}
	sum := 0
	for p := range 4 {
		sum += read(fmt.Sprintf("from=start&partition=%d", p))
	}
	if n := read("from=now"); sum != 300 || n != 0 {
		t.Errorf("%d events in all partitions, %d that are new", sum, n)
	}
}
