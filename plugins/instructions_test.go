package plugins

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/plugins/meter"
)

// Case L01: instructions that make a compiler take minutes, or a guest take all memory.
func TestL01Instructions(t *testing.T) {
	nest := func(n int) string { return strings.Repeat(block, n) + strings.Repeat(end, n) }
	targets := func(n int) string { return i32(0) + "\x0e" + leb(n) + strings.Repeat("\x00", n+1) }
	for code, want := range map[string]string{
		nest(1000): "", nest(1001): "nested blocks of function body 0: 1001",
		targets(4096): "", targets(4097): "targets of a br_table in function body 0: 4097",
		"\xfc\x0f\x00": "", i32(0xfc) + "\xfc\x10\x00": "",
		"\xfd\x0c" + strings.Repeat("\xfc\x0f", 8): "", "\xfd\x8e\x01": "",
	} {
		c, err := meter.TakeCensus(rawModule(section(sectionTable, vector([]string{"\x70\x00\x01"})), section(sectionCode, vector([]string{body(code)}))))
		if got := strings.Join(c.Faults(), " "); err != nil || !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%.40q: %v %s, want %s", code, err, got, want)
		}
	}
	for _, code := range []string{"\xff", "\x02\x64\x00" + end, "\xfc\x12", end} {
		if _, err := meter.TakeCensus(rawModule(section(sectionCode, vector([]string{body(code)})))); err == nil {
			t.Errorf("%q is taken", code)
		}
	}
}

// A batch is given up when its deadline passes while instances that trapped are replaced.
func TestL10TrapsUntilTheDeadline(t *testing.T) {
	h := hostOf(t, Config{Instances: 1})
	c := chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, scripted(false).bytes())})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var p *event.Problem
	if err := c.Process(ctx, batchOf("t", "t", "t")); !errors.As(err, &p) || p.Code != event.Overloaded {
		t.Errorf("error %v", err)
	}
	if n := c.places[0].active.bill.replacements.Load(); n != 1 {
		t.Errorf("%d replacements", n)
	}
	b := batchOf("ka")
	process(t, c, b)
	if got := outcomes(b); got != "accepted key=a\n" {
		t.Error(got)
	}
}
