package plugins

import (
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Cases L10 and F67: who sends a stream of events that make the guest trap is served without it for a while; all
// others are served as before, and nothing is lost.
func TestL10F67PoisonCostsItsCallerOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes in which something is forgiven
		h := strictHostOf(t, Config{Instances: 1})
		c := chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, scripted(false).bytes()), OnError: Policy{Action: DeadLetter}})
		from := func(caller string, lines ...string) string {
			b := batchOf(lines...)
			b.Owner = ownerOf(caller)
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
		traps, skips := c.places[0].active.bill.failures[trap].Load(), c.places[0].active.bill.failures[skipped].Load()
		if traps > trapsPerSecond+1 || traps < 2 || traps+skips != 101 {
			t.Errorf("%d traps, %d events without a call", traps, skips)
		}
		if got := from("alice", "ka", "kb"); got != "accepted key=a\naccepted key=b\n" {
			t.Errorf("got %s", got)
		}
		if n := c.places[0].active.bill.replacements.Load(); n > replacementsPerSecond {
			t.Errorf("%d replacements", n)
		}
	})
}

// What is forgiven: ten traps in a second, and a quarter of a second of time.
func TestF67PoisonIsForgiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &poison{limit: poisonLimit{traps: 10, replacements: 8, time: 250 * time.Millisecond}}
		for i := range 11 {
			if p.over('m') {
				t.Errorf("over the limit after %d", i)
			}
			p.trapped('m', time.Millisecond)
		}
		if !p.over('m') || p.over('n') {
			t.Error("not over the limit, or another one is")
		}
		<-time.After(time.Second)
		if p.over('m') {
			t.Error("not forgiven after a second")
		}
		for range 3 { // endless loops
			p.trapped('m', 100*time.Millisecond)
		}
		if !p.over('m') {
			t.Error("300 ms of loops are not over the limit")
		}
		<-time.After(time.Second)
		if p.over('m') {
			t.Error("time is not forgiven")
		}
		made := 0
		for range 100 {
			if p.replace('m') {
				made++
			}
		}
		if made != 8 {
			t.Errorf("%d replacements at once", made)
		}
		if !p.replace('n') || !p.replace('n') || p.replace('n') {
			t.Error("a caller who had none does not get two")
		}
		made = 0
		for other := range uint64(100) {
			if p.replace(1000 + other) {
				made++
			}
		}
		if made != 6 {
			t.Errorf("%d more for others", made)
		}
	})
}

// ownerOf is what stands for a caller in a batch.
func ownerOf(caller string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(caller))
	return h.Sum64()
}

// One caller's poison uses up what a version may have replaced; another one's events go on as ever: those around one that
// traps, and those that come to an instance that was broken before.
func TestF67OneCallersPoisonTakesNobodyElsesReplacements(t *testing.T) {
	const mark = 8 // an address that nothing else uses
	for name, kind := range map[string]string{"trap": unreachable, "exit": i32(2) + call(fnExit)} {
		synctest.Test(t, func(t *testing.T) { // no time passes, so that none of them comes back
			m := scripted(false)
			guest := &m.functions[fnProcess-fnVersion]
			guest.code = i32(0) + load8(mark) + if_ + kind + end + guest.code +
				get(lcmd) + i32('0') + eq + if_ + i32(0) + i32(1) + store8(mark) + end // 0 at the end of a call breaks the next one
			h := strictHostOf(t, Config{Instances: 1})
			c := chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, m.bytes()), OnError: Policy{Action: Reject}})
			from := func(caller string, lines ...string) string {
				b := batchOf(lines...)
				b.Owner = ownerOf(caller)
				process(t, c, b)
				return outcomes(b)
			}
			from("mallory", slices.Repeat([]string{"t"}, 100)...)
			if p := &c.places[0].active.bill.poison; p.has(&p.replaced, time.Now()) {
				t.Errorf("%s: there are replacements left", name)
			}
			if got := from("alice", "ka", "t", "kb"); got != "accepted key=a\nrejected plugin_failed\naccepted key=b\n" {
				t.Errorf("%s: alice, who sends one: %s", name, got)
			}
			from("carol", "0") // breaks the instance
			if got := from("bob", "ka", "kb"); got != "accepted key=a\naccepted key=b\n" {
				t.Errorf("%s: bob, who comes to an instance that is broken: %s", name, got)
			}
		})
	}
}

func TestAccountsOfManyCallersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &poison{limit: poisonLimit{traps: 10, replacements: 8, time: time.Second}}
		for i := range 50 * manyAccounts {
			p.trapped(uint64(i), time.Microsecond)
			<-time.After(time.Millisecond)
		}
		if len(p.accounts) > manyAccounts {
			t.Errorf("%d accounts", len(p.accounts))
		}
	})
}

// What a call costs its caller is what the guest computed: a machine that did something else meanwhile is nobody's fault.
func TestF67ABusyMachineIsNobodysPoison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leash{limit: 100 * time.Millisecond}
		l.start()
		for range 9 {
			<-time.After(5 * time.Millisecond)
			l.check()
		}
		<-time.After(time.Second)
		if got := l.cost(); got != 45*time.Millisecond+mostBetween {
			t.Errorf("%v", got)
		}
	})
}
