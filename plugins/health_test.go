package plugins

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// caller's events in a second, and how many of them trap.
type burden struct{ events, traps int }

// suspends plays so many seconds of callers, one behind the other in each second, and returns after how many the version is
// suspended, 0 for never.
func suspends(t *testing.T, seconds int, callers ...burden) (after int) {
	synctest.Test(t, func(t *testing.T) {
		var h health
		for second := range seconds {
			for caller, l := range callers {
				h.called(uint64(caller+1), l.events-l.traps)
				for range l.traps {
					if reason := h.trapped(uint64(caller+1), 0); reason != "" && after == 0 {
						after = second + 1
					}
				}
			}
			<-time.After(time.Second)
		}
		if after != 0 != h.suspended.Load() {
			t.Error("it is suspended, or it is not")
		}
	})
	return after
}

func TestL10AVersionIsSuspendedWhenCallersTrapOverTenSeconds(t *testing.T) {
	tests := []struct {
		what    string
		callers []burden
		want    bool
	}{
		{"nobody traps", []burden{{100, 0}, {100, 0}, {100, 0}}, false},
		{"6 % of three callers", []burden{{100, 6}, {100, 6}, {100, 6}, {100, 0}}, true},
		{"6 % of three callers in nine", []burden{{100, 6}, {100, 6}, {100, 6}, {100, 0}, {100, 0}, {100, 0}, {100, 0}, {100, 0}, {100, 0}}, true},
		{"6 % of three callers in ten", []burden{{100, 6}, {100, 6}, {100, 6}, {100, 0}, {100, 0}, {100, 0}, {100, 0}, {100, 0}, {100, 0}, {100, 0}}, false},
		{"half of three callers with 0.9 % of all events", []burden{{6, 3}, {6, 3}, {6, 3}, {982, 0}}, false},
		{"half of three callers with 1.1 % of all events", []burden{{8, 4}, {8, 4}, {6, 3}, {978, 0}}, true},
		{"5 % of three callers", []burden{{100, 5}, {100, 5}, {100, 5}}, false},
		{"6 % of two callers", []burden{{100, 6}, {100, 6}, {100, 0}}, false},
		{"all of one caller, beside others", []burden{{1000, 1000}, {10, 0}}, false},
		{"all of one caller, beside one with a few", []burden{{1000, 1000}, {10, 2}}, false},
		{"all of the only caller", []burden{{10, 10}}, true},
		{"half of the only caller", []burden{{10, 5}}, false},
		{"all of two callers", []burden{{10, 10}, {10, 10}}, true},
		{"all of a large caller and of a small one, beside one who is well", []burden{{1000, 1000}, {5, 5}, {10, 0}}, false},
	}
	for _, tt := range tests {
		after := suspends(t, 25, tt.callers...)
		if (after > 0) != tt.want || after > 0 && after != 11 {
			t.Errorf("%s: suspended after %d s, want %v", tt.what, after, tt.want)
		}
	}
	if after := suspends(t, 9, burden{10, 10}); after != 0 {
		t.Errorf("suspended after %d s", after)
	}
}

// Few traps say nothing, and old ones are forgotten.
func TestFewTrapsSuspendNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h health
		for range 100 {
			if reason := h.trapped(1, 0); reason != "" {
				t.Fatal(reason)
			}
			<-time.After(1200 * time.Millisecond)
		}
		<-time.After(20 * time.Second)
		h.called(1, 1)
		if h.watching.Load() {
			t.Error("it still counts every call")
		}
	})
}

// Many addresses take no more memory than a thousand a second.
func TestHealthOfManyCallersIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h health
		for caller := range uint64(20 * healthCallers) {
			h.trapped(caller, 1)
		}
		for _, s := range h.seconds {
			if len(s.callers) > healthCallers+1 {
				t.Errorf("%d callers", len(s.callers))
			}
		}
	})
}

// A version that is suspended is not called, and its events go by the policy; a canary's go to the version in force.
func TestWhatIsSuspendedIsNotCalled(t *testing.T) {
	h := hostOf(t, Config{Instances: 1})
	m, other := loadOf(t, h, scripted(false).bytes()), loadOf(t, h, variant('k', 'e').bytes())
	c := chainOf(t, h, Step{Name: "p", Module: m, OnError: Policy{Action: Pass}, Suspended: true})
	b := batchOf("ka", "t", "d")
	process(t, c, b)
	if got := outcomes(b); got != "accepted\naccepted\naccepted\n" || c.places[0].active.bill.calls.Load() != 0 || c.places[0].active.bill.failures[suspended].Load() != 3 {
		t.Errorf("got %s", got)
	}
	c = chainOf(t, h, Step{Name: "p", Module: m}, Step{Name: "p", Module: other, Stage: Canary, Percent: 100})
	told := ""
	c.OnSuspend(func(plugin, digest string, stage Stage, reason string) {
		told += plugin + " " + digest + " " + stage.String() + " " + reason
	})
	tried := c.places[0].tried.step
	tried.health.began, tried.health.last = time.Now().Add(-time.Minute), time.Now()
	for range 20 {
		b = batchOf("ka", "t", "t", "kb")
		process(t, c, b)
	}
	if got := outcomes(b); got != "accepted key=a\nrejected plugin_failed\nrejected plugin_failed\naccepted key=b\n" || b.Chain != m.Digest {
		t.Errorf("got %s by %s", got, b.Chain)
	}
	if want := "p " + other.Digest + " canary it trapped on "; !strings.HasPrefix(told, want) || strings.Count(told, "canary") != 1 {
		t.Errorf("told %q", told)
	}
}
