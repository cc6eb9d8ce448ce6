package plugins

import (
	"strings"
	"testing"
)

// TestL04NoEventFailsBecauseOfWhatTheGuestLost: it leaks a page an event, slowly and so fast that one call takes more than
// there is, and says where it is or not.
func TestL04NoEventFailsBecauseOfWhatTheGuestLost(t *testing.T) {
	for _, silent := range []bool{false, true} {
		for _, n := range []int{1, 10, 600} {
			h := hostOf(t, Config{Instances: 1, MaxMemory: 4 << 20})
			c := chainOf(t, h, Step{Name: "leaks", Module: loadOf(t, h, scripted(silent).bytes())})
			events := strings.Fields(strings.Repeat("g ", n))
			for range 300 / min(n, 100) {
				b := batchOf(events...)
				process(t, c, b)
				if got := outcomes(b); got != strings.Repeat("accepted\n", n) {
					t.Fatalf("%d events at a time, silent %v: %s", n, silent, got)
				}
			}
			if made := c.places[0].active.bill.replacements.Load(); made == 0 {
				t.Errorf("%d events at a time: the guest did not leak", n)
			}
		}
	}
}

// An event that needs more memory than there is fails, alone, once an instance has tried that has lost none.
func TestL04AnEventThatNeedsTooMuchFails(t *testing.T) {
	h := hostOf(t, Config{Instances: 1, MaxMemory: 4 << 20})
	c := chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, scripted(false).bytes())})
	for range 3 {
		b := batchOf("g", "m", "ka")
		process(t, c, b)
		if got := outcomes(b); got != "accepted\nrejected plugin_failed\naccepted key=a\n" {
			t.Errorf("got %s", got)
		}
	}
}

// TestRegionsThatOverlapLaterFailTheEvent: the module returned good ones when it was admitted, and for a large event one that
// is in use. What the gateway writes there must not stand for a verdict.
func TestRegionsThatOverlapLaterFailTheEvent(t *testing.T) {
	m := idle()
	m.functions[fnAlloc-fnVersion] = wasmFunction{"ii:i", 2, i32(256<<10) + get(0) + "\x49" /* lt_u */ + if_ + i32(2*pageSize) + ret + end + bump}
	h := hostOf(t, Config{Instances: 1, MaxMemory: 8 << 20})
	c := chainOf(t, h, Step{Name: "overlaps", Module: loadOf(t, h, m.bytes()), OnError: Policy{Action: Reject}})
	for range 2 {
		b := batchOf("k", strings.Repeat("x", 300<<10), "k")
		process(t, c, b)
		if got := outcomes(b); got != "accepted\nrejected plugin_failed\naccepted\n" {
			t.Errorf("got %s", got)
		}
	}
}

// An event that comes to an instance that an earlier one has broken is not to blame: a fresh one tries it first. What traps
// there as well fails, once.
func TestNoEventFailsBecauseOfWhatAnEarlierOneBroke(t *testing.T) {
	const mark = 8 // an address that nothing else uses
	for _, silent := range []bool{false, true} {
		m := scripted(silent)
		guest := &m.functions[fnProcess-fnVersion]
		guest.code = i32(0) + load8(mark) + if_ + unreachable + end + guest.code +
			get(lcmd) + i32('0') + eq + if_ + i32(0) + i32(1) + store8(mark) + end // 0 at the end of a call breaks the next one
		h := strictHostOf(t, Config{Instances: 1})
		c := chainOf(t, h, Step{Name: "breaks", Module: loadOf(t, h, m.bytes()), OnError: Policy{Action: Reject}})
		for i, step := range []struct{ lines, want string }{
			{"0", "accepted\n"},
			{"ka kb", "accepted key=a\naccepted key=b\n"},
			{"0", "accepted\n"},
			{"t ka", "rejected plugin_failed\naccepted key=a\n"},
		} {
			b := batchOf(strings.Fields(step.lines)...)
			process(t, c, b)
			if got := outcomes(b); got != step.want {
				t.Errorf("step %d, silent %v: got %s", i, silent, got)
			}
		}
		if failed, made := c.places[0].active.bill.failures[trap].Load(), c.places[0].active.bill.replacements.Load(); failed != 1 || made < 3 {
			t.Errorf("silent %v: %d failures, want 1; %d instances were replaced", silent, failed, made)
		}
	}
}
