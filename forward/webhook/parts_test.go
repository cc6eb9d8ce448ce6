package webhook

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/internal/wholefile"
)

func TestPause(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		after, date string
		want        time.Duration
	}{
		{"", "", 0}, {"7", "", 7 * time.Second}, {"0", "", 0}, {"-1", "", 0}, {"1.5", "", 0}, {"soon", "", 0},
		{"99999999999999999999", "", 0}, {"2147483647", "", 2147483647 * time.Second},
		{"Sun, 01 Mar 2026 12:00:30 GMT", "", 30 * time.Second},
		{"Sunday, 01-Mar-26 12:00:30 GMT", "", 30 * time.Second},
		{"Sun, 01 Mar 2026 11:00:00 GMT", "", 0},
		{"Sun, 01 Mar 2026 10:00:30 GMT", "Sun, 01 Mar 2026 10:00:00 GMT", 30 * time.Second}, // a clock two hours behind
	} {
		if got := pause(answer{retryAfter: c.after, date: c.date}, now); got != c.want {
			t.Errorf("Retry-After %q, Date %q: %v, want %v", c.after, c.date, got, c.want)
		}
	}
}

func nodesOf(t *testing.T, n int) []*node {
	t.Helper()
	var urls []string
	for i := range n {
		urls = append(urls, fmt.Sprintf("http://node-%d.example/ingest", i))
	}
	nodes, err := parseNodes(urls, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return nodes
}

// Partitions are shared out evenly; a node more or less moves only partitions to or from it.
func TestRendezvous(t *testing.T) {
	const partitions = 4096
	seven, eight := nodesOf(t, 7), nodesOf(t, 8)
	count := map[string]int{}
	for p := range int32(partitions) {
		before, after := choose(seven, p).name, choose(eight, p).name
		count[after]++
		if before != after && after != eight[7].name {
			t.Fatalf("partition %d moved from %s to %s", p, before, after)
		}
	}
	for name, n := range count {
		if n < partitions/8*3/4 || n > partitions/8*5/4 {
			t.Errorf("%s has %d partitions of %d over 8", name, n, partitions)
		}
	}
	if len(count) != 8 {
		t.Errorf("%d nodes used", len(count))
	}
}

func TestParseNode(t *testing.T) {
	for raw, want := range map[string][]string{
		"http://a":                     {"http://a", "a:80", "", "a", "/", ""},
		"https://a.example/in?x=%20y":  {"https://a.example/in?x=%20y", "a.example:443", "a.example", "a.example", "/in?x=%20y", ""},
		"https://u:p@[::1]:8443/i%2Fn": {"https://[::1]:8443/i%2Fn", "[::1]:8443", "::1", "[::1]:8443", "/i%2Fn", "Basic dTpw"},
	} {
		n, err := parseNode(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got := []string{n.name, n.addr, n.server, n.host, n.target, n.auth}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

func TestCircuit(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	down := failure{err: errors.New("down")}
	c := &circuit{node: "n", log: slog.New(slog.DiscardHandler)}
	enter := func(want bool) entry {
		t.Helper()
		e, err := c.enter(now)
		if (err == nil) != want {
			t.Fatalf("let through: %v, want %v", err == nil, want)
		}
		return e
	}
	for range enough - 1 {
		if wait := c.failed(enter(true), now, down); wait != 0 {
			t.Fatalf("waits %v before the circuit opens", wait)
		}
	}
	late := enter(true)
	if wait := c.failed(enter(true), now, down); wait != firstBreak || c.err() == nil {
		t.Fatalf("after %d failures: waits %v, err %v", enough, wait, c.err())
	}
	enter(false)
	if wait := c.failed(late, now, down); wait != firstBreak {
		t.Errorf("a failure of a run that was under way prolongs the wait to %v", wait)
	}
	now = now.Add(firstBreak)
	probe := enter(true)
	enter(false)
	c.leave(probe) // its request went away
	probe = enter(true)
	enter(false)
	if wait := c.failed(probe, now, down); wait != 2*firstBreak {
		t.Errorf("after a failed probe: waits %v", wait)
	}
	for range 20 {
		now = now.Add(longBreak)
		if wait := c.failed(enter(true), now, down); wait > longBreak {
			t.Fatalf("waits %v", wait)
		}
	}
	now = now.Add(longBreak)
	enter(true)
	c.succeeded()
	enter(true)
	enter(true)
	if c.err() != nil {
		t.Errorf("healed: %v", c.err())
	}

	if wait := c.failed(enter(true), now, failure{misconfigured: true, err: errors.New("401")}); wait == 0 || c.err() == nil {
		t.Error("a misconfigured node is sent more")
	}
	_, err := c.enter(now)
	if e, ok := errors.AsType[*forward.SendError](err); !ok || e.After <= 0 || e.Reason != "circuit_open" {
		t.Errorf("an open circuit answers %+v", err)
	}
	c.succeeded()
	for asked, want := range map[time.Duration]time.Duration{7 * time.Second: 7 * time.Second, 24 * time.Hour: mostPause} {
		if wait := c.failed(enter(true), now, failure{after: asked, err: errors.New("503")}); wait != want {
			t.Errorf("asked for %v: waits %v, want %v", asked, wait, want)
		}
		enter(false)
		c.succeeded()
	}
}

// A misconfigured node is an error in the log, once; one that is away is none.
func TestAMisconfiguredNodeIsAnError(t *testing.T) {
	var text strings.Builder
	c := circuit{node: "n", log: slog.New(slog.NewTextHandler(&text, nil))}
	now := time.Now()
	fail := func(f failure) {
		now = now.Add(time.Minute)
		e, err := c.enter(now)
		if err != nil {
			t.Fatal(err)
		}
		c.failed(e, now, f)
	}
	for range 2 * enough {
		fail(failure{err: errors.New("answered 503")})
	}
	if strings.Contains(text.String(), "level=ERROR") || strings.Count(text.String(), "level=WARN") != 1 {
		t.Errorf("of a node that is away:\n%s", text.String())
	}
	for range 20 {
		fail(failure{misconfigured: true, err: errors.New("answered 302 Found")})
	}
	if strings.Count(text.String(), "level=ERROR") != 1 || !strings.Contains(text.String(), "302 Found") {
		t.Errorf("of a misconfigured node:\n%s", text.String())
	}
}

// No number comes twice over restarts, whatever happens to clock and file in between.
func TestNumbersNeverRepeat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "numbers")
	log := slog.New(slog.DiscardHandler)
	now := time.Now()
	used := uint64(0)
	for i, between := range []func(){
		func() {},
		func() { now = now.Add(-24 * time.Hour) }, // the clock is set back
		func() { now = now.Add(2 * time.Second) },
		func() { now = now.Add(48 * time.Hour); _ = os.Remove(path) }, // the stream was deleted
		func() {
			now = now.Add(time.Hour)
			_ = os.WriteFile(path, []byte("00000000000000000001 00000000\n"), 0o600)
		},
		func() { _ = os.WriteFile(path+".42", []byte("half"), 0o600) }, // a crash while it was written
	} {
		between()
		n, err := openNumbers(path, now, log)
		if err != nil {
			t.Fatal(err)
		}
		if n.first < used {
			t.Errorf("start %d: begins at %d, %d is used", i, n.first, used)
		}
		for _, last := range []uint64{n.first + 1, n.first + step/2, n.first + 3*step, n.first + 2*step} {
			if err := n.cover(last); err != nil {
				t.Fatal(err)
			}
			used = max(used, last)
		}
	}
}

func TestDamagedNumbersAreSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "numbers")
	if err := wholefile.Write(path, []byte(render(12345))); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if first, err := readNumbers(path); first != 12345 || err != nil {
		t.Fatalf("%d, %v", first, err)
	}
	for i := range whole {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 1
		for _, text := range [][]byte{whole[:i], flipped, append(bytes.Clone(whole), whole[i])} {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if first, err := readNumbers(path); !errors.Is(err, errDamaged) {
				t.Errorf("%q is read as %d, %v", text, first, err)
			}
		}
	}
}

// A number that can't be reserved is not sent.
func TestNumbersThatCannotBeReserved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := Open(Config{Nodes: []string{"http://127.0.0.1:1/"}, Numbers: filepath.Join(dir, "numbers")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	last, err := b.Resume(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	err = b.Send(t.Context(), &forward.Run{First: last + 2*step, Last: last + 2*step})
	if e, ok := errors.AsType[*forward.SendError](err); !ok || e.Reason != "numbers" || e.Refused {
		t.Errorf("error %+v", err)
	}
}
