package event

import (
	"fmt"
	"testing"
)

func TestReplaceKeepsWhatCame(t *testing.T) {
	b := &Batch{Events: []Event{{Data: []byte("a")}, {Data: []byte("b")}}}
	b.Replace(1, []byte("x"))
	b.Replace(1, []byte("y"))
	if got := fmt.Sprintf("%s %s %s %s", b.Original(0), b.Events[0].Data, b.Original(1), b.Events[1].Data); got != "a a b y" {
		t.Errorf("got %s, want a a b y", got)
	}
	b.Reset()
	b.Events = append(b.Events, Event{}, Event{Data: []byte("new")})
	if got := string(b.Original(1)); got != "new" {
		t.Errorf("after Reset %q", got)
	}
	b.Replace(0, nil)
	if got := string(b.Original(1)); got != "new" {
		t.Errorf("after Reset and a Replace %q", got)
	}
}

func TestSetAside(t *testing.T) {
	b := &Batch{Events: make([]Event, 3)}
	b.SetAside(Letter{Index: 1, Code: PluginFailed})
	b.Reject(2, PluginRejected, "")
	if got := b.Counts(); got != (Counts{Accepted: 1, DeadLettered: 1, Rejected: 1}) {
		t.Errorf("counts %+v", got)
	}
	b.Reset()
	if len(b.Letters) != 0 {
		t.Error("Reset keeps letters")
	}
}
