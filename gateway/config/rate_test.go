package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestRatesThatCannotBe(t *testing.T) {
	tokens := fmt.Sprintf("auth: {tokens: [{id: web-1, secret: %q, streams: ['*'], actions: [send]}]}\n", secretFile(t, "0123456789abcdef"))
	for doc, want := range map[string]string{
		"rates: {caller: {events: 10000, bytes: 10MiB, burst: 2s}, callers: {web-1: {events: 50000}}}": "",
		"streams: {web: {rate: {key: {events: 30}}}}":                                                  "",
		"rates: {callers: {web-2: {events: 1}}}":                                                       `rates.callers.web-2: is the id of no token in auth.tokens; those are ["web-1"]`,
		"rates: {caller: {burst: 2s}}":                                                                 "rates.caller.burst: there is no rate",
		"rates: {caller: {events: -1}}":                                                                "rates.caller.events: must be 0.001 to",
		"rates: {caller: {bytes: 2GiB}}":                                                               "rates.caller.bytes: must be at most",
		"rates: {caller: {event: 1}}":                                                                  `did you mean "events"?`,
		"rates: {caller: {events: 1, burst: 2h}}":                                                      "rates.caller.burst: must be 1ms to 1h",
		"streams: {web: {rate: {key: {events: 30, burst: 2h}}}}":                                       "streams.web.rate.key.burst:",
		"streams: {web: {rate: {key: {events: 30}, keys: 100000000}}}":                                 "streams.web.rate.keys: must be at most",
	} {
		_, err := load(t, tokens+doc)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s:\n got %v\nwant %s", doc, err, want)
		}
	}
}
