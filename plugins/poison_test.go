package plugins

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Cases L10 and F67: who sends a stream of events that make the guest trap is served without it for a while; all
// others are served as before, and nothing is lost.
func TestL10F67PoisonCostsItsCallerOnly(t *testing.T) {
	h := strictHostOf(t, Config{Instances: 1})
	c := chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, scripted(false).bytes()), OnError: Policy{Action: DeadLetter}})
	from := func(caller string, lines ...string) string {
		b := batchOf(lines...)
		b.Caller = []byte(caller)
		process(t, c, b)
		if counts := b.Counts(); counts.DeadLettered != len(b.Letters) || counts.Accepted+counts.DeadLettered != len(lines) {
			t.Errorf("%+v, %d letters", counts, len(b.Letters))
		}
		return outcomes(b)
	}
	poison := slices.Repeat([]string{"t"}, 100)
	if got := from("mallory", append(poison, "ka")...); got != strings.Repeat("deadlettered\n", 101) {
		t.Errorf("got %s", got)
	}
	traps, skips := c.steps[0].bill.failures[trap].Load(), c.steps[0].bill.failures[skipped].Load()
	if traps > trapsPerSecond+1 || traps < 2 || traps+skips != 101 {
		t.Errorf("%d traps, %d events without a call", traps, skips)
	}
	if got := from("alice", "ka", "kb"); got != "accepted key=a\naccepted key=b\n" {
		t.Errorf("got %s", got)
	}
	if n := c.steps[0].bill.replacements.Load(); n > replacementsPerSecond {
		t.Errorf("%d replacements", n)
	}
}

// What is forgiven: ten traps in a second, and a quarter of a second of time.
func TestF67PoisonIsForgiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &poison{limit: poisonLimit{traps: 10, replacements: 8, time: 250 * time.Millisecond}}
		for i := range 11 {
			if p.over([]byte("m")) {
				t.Errorf("over the limit after %d", i)
			}
			p.trapped([]byte("m"), time.Millisecond)
		}
		if !p.over([]byte("m")) || p.over([]byte("n")) {
			t.Error("not over the limit, or another one is")
		}
		<-time.After(time.Second)
		if p.over([]byte("m")) {
			t.Error("not forgiven after a second")
		}
		for range 3 { // endless loops
			p.trapped([]byte("m"), 100*time.Millisecond)
		}
		if !p.over([]byte("m")) {
			t.Error("300 ms of loops are not over the limit")
		}
		<-time.After(time.Second)
		if p.over([]byte("m")) {
			t.Error("time is not forgiven")
		}
		made := 0
		for range 100 {
			if p.replace() {
				made++
			}
		}
		if made != 8 {
			t.Errorf("%d replacements at once", made)
		}
	})
}

func TestAccountsOfManyCallersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &poison{limit: poisonLimit{traps: 10, replacements: 8, time: time.Second}}
		for i := range 50 * manyAccounts {
			p.trapped([]byte{byte(i), byte(i >> 8)}, time.Microsecond)
			<-time.After(time.Millisecond)
		}
		if len(p.accounts) > manyAccounts {
			t.Errorf("%d accounts", len(p.accounts))
		}
	})
}
