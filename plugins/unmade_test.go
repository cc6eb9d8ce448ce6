package plugins

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// unable makes a pool's next instances fail, and counts the tries.
func unable(p *pool) (tries *atomic.Int64, able func()) {
	make_ := p.make
	tries = &atomic.Int64{}
	p.make = func(context.Context) (*instance, error) {
		tries.Add(1)
		return nil, errors.New("hg_init: unreachable\nwasm stack trace")
	}
	return tries, func() { p.make = make_ }
}

// When no instance can be made in place of the last one that trapped, the events go by the policy with a kind of its own, that is
// counted, logged and named; and later ones are served when one can be made again.
func TestL10EventsGoByThePolicyWhenNoInstanceCanBeMade(t *testing.T) {
	h := hostOf(t, Config{Instances: 1})
	c := chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, scripted(false).bytes()), OnError: Policy{Action: Pass}})
	s := c.places[0].active
	tries, able := unable(s.pool)
	process(t, c, batchOf("ka", "t"))
	for range 20 {
		b := batchOf("ka", "kb")
		process(t, c, b)
		if got := outcomes(b); got != "accepted\naccepted\n" {
			t.Fatalf("got %s", got)
		}
	}
	if n := s.bill.failures[unmade].Load(); n != 40 {
		t.Errorf("%d events are counted", n)
	}
	ailing := c.Ailing()
	if len(ailing) != 1 || !strings.Contains(ailing[0], "plugin scripted (active, sha256:") || !strings.HasSuffix(ailing[0], "0 of 1 are left, and INIT: hg_init: unreachable") {
		t.Errorf("ailing: %q", ailing)
	}
	said := ""
	if err := h.Logs(t.Context(), LogQuery{Plugin: "scripted"}, func(lines []LogLine, _ bool) error {
		for _, l := range lines {
			said += l.Text + "\n"
		}
		return nil
	}); err != nil || !strings.Contains(said, "failed with INIT: an instance can't be made: hg_init: unreachable\n") {
		t.Errorf("%v, logged %q", err, said)
	}
	able()
	s.pool.making.until = time.Time{}
	b := batchOf("kc")
	process(t, c, b)
	if got := outcomes(b); got != "accepted key=c\n" || len(c.Ailing()) != 0 || tries.Load() == 0 {
		t.Errorf("got %s, ailing %q, %d tries", got, c.Ailing(), tries.Load())
	}
}

// As long as one instance is there and healthy it takes all events, also while it is in use.
func TestL10AnInstanceThatIsThereGoesBeforeOneThatIsToBeMade(t *testing.T) {
	h := hostOf(t, Config{Instances: 2})
	c := chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, scripted(false).bytes())})
	s := c.places[0].active
	tries, _ := unable(s.pool)
	b := batchOf("ka", "t", "kb")
	process(t, c, b)
	if got := outcomes(b); got != "accepted key=a\nrejected plugin_failed\naccepted key=b\n" {
		t.Errorf("the rest of a batch whose instance can't be replaced: %s", got)
	}
	for range 20 {
		b := batchOf("kc")
		process(t, c, b)
		if got := outcomes(b); got != "accepted key=c\n" {
			t.Fatalf("got %s", got)
		}
	}
	if n := tries.Load(); n != 1 {
		t.Errorf("%d tries, though one is idle", n)
	}
	in, err := s.pool.take(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan string)
	go func() {
		b := batchOf("kd")
		process(t, c, b)
		done <- outcomes(b)
	}()
	for s.pool.queue.length.Load() == 0 {
		select {
		case got := <-done:
			t.Fatalf("it did not wait for the one in use: %s", got)
		case <-time.After(time.Millisecond):
		}
	}
	s.pool.give(in)
	if got := <-done; got != "accepted key=d\n" {
		t.Errorf("got %s", got)
	}
}

// When the last one in use breaks, all who wait for it are told.
func TestL10WhoWaitsForAnInstanceIsToldWhenNoneIsLeft(t *testing.T) {
	p := newPool(2, nil)
	unable(p)
	p.empty = 1 // the other one is in use
	done := make(chan error)
	for range 3 {
		go func() {
			_, err := p.take(context.Background(), 1)
			done <- err
		}()
	}
	for p.queue.length.Load() < 3 {
		<-time.After(time.Millisecond)
	}
	p.give(nil)
	for range 3 {
		if err := <-done; !errors.As(err, new(*notMade)) {
			t.Error(err)
		}
	}
	if p.empty != 2 {
		t.Errorf("%d places", p.empty)
	}
}

// A start that fails is tried again at most 8 times a second, and one that takes its time for at most a tenth of a core.
func TestL10AStartThatLoopsBurnsNoCore(t *testing.T) {
	for took, most := range map[time.Duration]int64{0: 8 * 60, 2 * time.Second: 4} {
		synctest.Test(t, func(t *testing.T) {
			tries, p := int64(0), newPool(1, nil)
			p.empty = 1
			p.make = func(context.Context) (*instance, error) {
				tries++
				<-time.After(took)
				return nil, errors.New("no")
			}
			for end := time.Now().Add(time.Minute); time.Now().Before(end); {
				if _, err := p.take(context.Background(), 1); err == nil {
					t.Fatal("no error")
				}
				<-time.After(time.Millisecond)
			}
			if tries > most || tries < 2 {
				t.Errorf("%d tries in a minute of %s each", tries, took)
			}
		})
	}
}

// A version of which no instance can be made is suspended like one that traps, and one that is suspended needs none.
func TestL10AVersionThatCannotStartIsSuspended(t *testing.T) {
	h := hostOf(t, Config{Instances: 1})
	m := loadOf(t, h, scripted(false).bytes())
	c := chainOf(t, h, Step{Name: "p", Module: m, OnError: Policy{Action: Pass}})
	told := ""
	c.OnSuspend(func(_, _ string, _ Stage, reason string) { told += reason })
	s := c.places[0].active
	unable(s.pool)
	process(t, c, batchOf("t"))
	s.health.began, s.health.last = time.Now().Add(-time.Minute), time.Now()
	for range 20 {
		process(t, c, batchOf("ka"))
	}
	if !s.health.suspended.Load() || !strings.Contains(told, "an instance can't be made: hg_init: unreachable") {
		t.Errorf("told %q", told)
	}
	c, err := h.NewChain(t.Context(), []Step{{Name: "p", Module: m, Config: []byte("x is wrong"), OnError: Policy{Action: Pass}, Suspended: true}}, Rules{})
	if err != nil {
		t.Fatalf("the chain with the suspended version: %v", err)
	}
	b := batchOf("ka")
	process(t, c, b)
	if got := outcomes(b); got != "accepted\n" {
		t.Errorf("got %s", got)
	}
	closed(t, c.Retire())
}

// What it takes to make another instance is charged to whose event broke the last one: others are served.
func TestF67ASlowStartIsPaidByWhoCausesIt(t *testing.T) {
	h := strictHostOf(t, Config{Instances: 1})
	c := chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, scripted(false).bytes()), OnError: Policy{Action: Reject}})
	s := c.places[0].active
	s.pool.making.cost.Store(int64(time.Minute)) // as if the guest took so long
	from := func(caller string, lines ...string) string {
		b := batchOf(lines...)
		b.Owner = ownerOf(caller)
		process(t, c, b)
		return outcomes(b)
	}
	from("mallory", "t")
	if !s.bill.poison.over(ownerOf("mallory")) {
		t.Error("the caller is not charged")
	}
	from("mallory", "t", "t", "t")
	if n := s.bill.failures[skipped].Load(); n != 3 {
		t.Errorf("%d events are skipped", n)
	}
	if got := from("alice", "ka"); got != "accepted key=a\n" || s.bill.replacements.Load() != 1 {
		t.Errorf("alice: %s, %d replacements", got, s.bill.replacements.Load())
	}
	if n := s.pool.making.cost.Load(); n == 0 || n == int64(time.Minute) {
		t.Errorf("the time of the new one is %d", n)
	}
}

// What a guest logs takes no more room as it is written than it may, whatever has to be escaped.
func TestALogLineIsBoundedAsItIsWritten(t *testing.T) {
	for _, text := range []string{strings.Repeat("\x00", 1024), strings.Repeat("\x1b[", 600), strings.Repeat(`"`, 1024), strings.Repeat("\u2028", 400), strings.Repeat("\xff ", 1000)} {
		said := &strings.Builder{}
		s := &surroundings{log: slog.New(slog.NewJSONHandler(said, nil)), bill: &bill{}}
		s.line(slog.LevelInfo, []byte(text))
		if n := said.Len(); n > 1024+200 {
			t.Errorf("%q: %d bytes", text[:4], n)
		}
		if strings.Contains(said.String(), `\u`) {
			t.Errorf("%q: %s", text[:4], said.String()[:100])
		}
	}
	if got := printable([]byte("héllo \"w\"\n\tx\x00")); got != "héllo \"w\"\n\tx\uFFFD" {
		t.Errorf("got %q", got)
	}
}
