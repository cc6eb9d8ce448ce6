package plugins

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/abi"
)

// Case L11, with none set: an extractor's failure sets the event aside, any other plugin's refuses it.
func TestL11DefaultGoesByTheKindOfPlugin(t *testing.T) {
	for capabilities, want := range map[int32]string{
		abi.SetsKeys:                "deadlettered\n",
		abi.SetsKeys | abi.Replaces: "deadlettered\n",
		abi.SetsKeys | abi.Drops:    "rejected plugin_failed\n",
		abi.Drops:                   "rejected plugin_failed\n",
		abi.Replaces:                "rejected plugin_failed\n",
		0:                           "rejected plugin_failed\n",
		abi.SetsKeys | abi.Drops | abi.KeepsState: "rejected plugin_failed\n",
	} {
		m := scripted(false)
		m.functions[0].code = i32(capabilities)
		h := hostOf(t, Config{Instances: 1})
		c := chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, m.bytes())})
		b := batchOf("t")
		process(t, c, b)
		if got := outcomes(b); got != want {
			t.Errorf("capabilities %#x: got %s want %s", capabilities, got, want)
		}
	}
}

// What is set aside says who failed on it and how, and has the bytes that the client sent, whatever the plugins before
// made of them. Plugins behind do not see it.
func TestSetAsideWithItsReasonAndItsBytes(t *testing.T) {
	h := hostOf(t, Config{Instances: 1})
	m := loadOf(t, h, scripted(false).bytes())
	c := chainOf(t, h, Step{Name: "first", Module: m}, Step{Name: "second", Module: m, OnError: Policy{Action: DeadLetter}},
		Step{Name: "third", Module: m})
	b := batchOf("ka", "vt", "vn", "vvd", "kb")
	process(t, c, b)
	if got, want := outcomes(b), "accepted key=a\ndeadlettered\ndeadlettered\nfiltered\naccepted key=b\n"; got != want {
		t.Errorf("got\n%s want\n%s", got, want)
	}
	var got []string
	for _, l := range b.Letters {
		got = append(got, fmt.Sprint(l.Index, " ", l.Code, " ", l.Plugin, " ", l.Digest == m.Digest, " ", string(b.Original(l.Index))))
	}
	if text := strings.Join(got, "\n"); text != "1 plugin_failed second true vt\n2 plugin_failed second true vn" &&
		text != "2 plugin_failed second true vn\n1 plugin_failed second true vt" {
		t.Errorf("letters\n%s", text)
	}
	for _, l := range b.Letters {
		if kind := map[int]string{1: "TRAP", 2: "NOT_WRITTEN"}[l.Index]; !strings.Contains(l.Detail, kind) {
			t.Errorf("event %d: detail %q, want %s", l.Index, l.Detail, kind)
		}
	}
	if len(b.Errors) != 0 || b.Counts() != (event.Counts{Accepted: 2, Filtered: 1, DeadLettered: 2}) {
		t.Errorf("errors %v, counts %+v", b.Errors, b.Counts())
	}
}
