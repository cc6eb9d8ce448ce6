package plugins

import (
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
)

func TestVerdicts(t *testing.T) {
	b := run(t, Policy{}, "kabc", "e", "0", "d", "r", "vnew bytes", "kz")
	want := "accepted key=abc\naccepted key=\naccepted\nfiltered\nrejected plugin_rejected\naccepted\naccepted key=z\n"
	if got := outcomes(b); got != want {
		t.Errorf("got\n%s want\n%s", got, want)
	}
	if got := string(b.Events[5].Data); got != "new bytes" {
		t.Errorf("replaced by %q", got)
	}
	if got := b.Errors[0].Detail; got != "plugin scripted refused this event: reason 7" {
		t.Errorf("detail %q", got)
	}
}

func TestKeyIsAViewOfTheEventOrACopy(t *testing.T) {
	b := run(t, Policy{}, "kabc", "cxyz")
	if e := b.Events[0]; &e.Key[0] != &e.Data[1] {
		t.Error("a key in the event was copied")
	}
	if e := b.Events[1]; string(e.Key) != "cK" || string(e.Data) != "cxyz" {
		t.Errorf("the guest changed its copy of the event: key %q, data %q", e.Key, e.Data)
	}
}

// Each of these is wrong in itself; only the event it stands for is affected.
func TestBadResults(t *testing.T) {
	for _, bad := range []string{"B", "b", "q", "V", "L", "?", "n", "vtoo\xff"} {
		h := hostOf(t, Config{Instances: 1, MaxMemory: 4 << 20})
		c := chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, scripted(false).bytes())})
		b := batchOf("ka", bad, "kb")
		b.Syntax = event.Text
		process(t, c, b)
		if got, want := outcomes(b), "accepted key=a\nrejected plugin_failed\naccepted key=b\n"; got != want {
			t.Errorf("%q: got\n%s want\n%s", bad, got, want)
		}
		kind := "BAD_RESULT"
		if bad == "n" {
			kind = "NOT_WRITTEN"
		}
		if len(b.Errors) != 1 || !strings.Contains(b.Errors[0].Detail, kind) {
			t.Errorf("%q: errors %v, want %s", bad, b.Errors, kind)
		}
	}
}

func TestKinds(t *testing.T) {
	for command, kind := range map[string]string{"t": "TRAP", "x": "EXIT", "m": "OOM", "s": "STACK"} {
		b := run(t, Policy{}, "ka", command, "kb")
		if got, want := outcomes(b), "accepted key=a\nrejected plugin_failed\naccepted key=b\n"; got != want {
			t.Errorf("%s: got\n%s want\n%s", kind, got, want)
		}
		if len(b.Errors) != 1 || !strings.Contains(b.Errors[0].Detail, kind) {
			t.Errorf("errors %v, want %s", b.Errors, kind)
		}
	}
}

// Case L10: one event in the middle of 256 makes the guest trap.
func TestL10OnlyTheEventThatTrapsIsAffected(t *testing.T) {
	for _, silent := range []bool{false, true} { // also a guest that does not say where it was
		h := hostOf(t, Config{Instances: 1})
		c := chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, scripted(silent).bytes())})
		for range 3 { // and the next batches are served
			var lines []string
			for range 256 {
				lines = append(lines, "kabc")
			}
			lines[128] = "t"
			b := batchOf(lines...)
			process(t, c, b)
			want := strings.Repeat("accepted key=abc\n", 128) + "rejected plugin_failed\n" + strings.Repeat("accepted key=abc\n", 127)
			if got := outcomes(b); got != want {
				t.Fatalf("silent %v: got\n%s", silent, got)
			}
		}
	}
}

func TestManyTrapsInBatchesOfManyCalls(t *testing.T) {
	var lines []string
	for i := range 1000 {
		switch {
		case i%50 == 0:
			lines = append(lines, "t")
		case i%7 == 0:
			lines = append(lines, "0"+strings.Repeat("x", 20_000))
		default:
			lines = append(lines, "kabc")
		}
	}
	if got := outcomes(run(t, Policy{}, lines...)); got != wantOf(lines) {
		t.Error("outcomes differ")
	}
}

// wantOf is what becomes of lines of commands t, k and 0.
func wantOf(lines []string) string {
	var out strings.Builder
	for _, line := range lines {
		out.WriteString(map[byte]string{'t': "rejected plugin_failed", 'k': "accepted key=" + line[1:], '0': "accepted"}[line[0]] + "\n")
	}
	return out.String()
}

func TestWholeBatchFails(t *testing.T) {
	b := run(t, Policy{}, "ka", "f", "kb")
	if got, want := outcomes(b), strings.Repeat("rejected plugin_failed\n", 3); got != want {
		t.Errorf("got\n%s", got)
	}
}

// Case L11: what becomes of an event on which the plugin fails.
func TestL11Policies(t *testing.T) {
	tests := []struct{ word, key, want string }{
		{"", "", "rejected plugin_failed\n"},
		{"reject", "", "rejected plugin_failed\n"},
		{"pass", "", "accepted key=before\n"},
		{"default_key", "x", "accepted key=x\n"},
		{"default_key", "", "accepted key=\n"},
		{"deadletter", "", "deadlettered key=before\n"},
	}
	for _, tt := range tests {
		p, err := ParsePolicy(tt.word, tt.key)
		if err != nil {
			t.Fatal(err)
		}
		h := hostOf(t, Config{Instances: 1})
		c := chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, scripted(false).bytes()), OnError: p})
		for _, bad := range []string{"t", "n"} {
			b := batchOf(bad)
			b.Events[0].Key, b.Events[0].HasKey = []byte("before"), true
			process(t, c, b)
			if got := outcomes(b); got != tt.want {
				t.Errorf("%q on %s: got %s want %s", tt.word, bad, got, tt.want)
			}
			if string(b.Events[0].Data) != bad {
				t.Errorf("%q: the data became %q", tt.word, b.Events[0].Data)
			}
		}
	}
	if _, err := ParsePolicy("ignore", ""); err == nil {
		t.Error("an unknown policy is taken")
	}
}

// Case A01: drop, reject and trap are three different things.
func TestA01DropRejectTrap(t *testing.T) {
	b := run(t, Policy{}, "d", "r", "t")
	c := b.Counts()
	if c.Accepted != 0 || c.Filtered != 1 || c.Rejected != 2 {
		t.Errorf("counts %+v", c)
	}
	if b.Errors[0].Code == b.Errors[1].Code {
		t.Errorf("errors %v", b.Errors)
	}
}

func TestChainsRunOnWhatIsKeptAndTheLastKeyWins(t *testing.T) {
	h := hostOf(t, Config{Instances: 1})
	m := loadOf(t, h, scripted(false).bytes())
	c := chainOf(t, h, Step{Name: "first", Module: m}, Step{Name: "second", Module: m})
	b := batchOf("vkabc", "vv0", "vd", "d", "ka", "v0x")
	b.Events[5].Key, b.Events[5].HasKey = []byte("earlier"), true
	process(t, c, b)
	want := "accepted key=abc\naccepted\nfiltered\nfiltered\naccepted key=a\naccepted key=earlier\n"
	if got := outcomes(b); got != want {
		t.Errorf("got\n%s want\n%s", got, want)
	}
	if want := m.Digest + "," + m.Digest; b.Chain != want || c.Digest() != want {
		t.Errorf("chain %s", b.Chain)
	}
}

func TestEventLargerThanACallComesAlone(t *testing.T) {
	large := "k" + strings.Repeat("x", 3<<20)
	h := hostOf(t, Config{Instances: 1, MaxMemory: 16 << 20})
	c := chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, scripted(false).bytes())})
	b := batchOf("ka", "0"+large, "kb")
	process(t, c, b)
	if got, want := outcomes(b), "accepted key=a\naccepted\naccepted key=b\n"; got != want {
		t.Errorf("got\n%s", got)
	}
}

// The guest has no room for the large event: only that one fails.
func TestEventThatDoesNotFitIntoTheGuest(t *testing.T) {
	b := run(t, Policy{}, "ka", "0"+strings.Repeat("x", 6<<20), "kb")
	if got, want := outcomes(b), "accepted key=a\nrejected plugin_failed\naccepted key=b\n"; got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestReplacedJSONIsCheckedAndItsFieldsFound(t *testing.T) {
	h := hostOf(t, Config{Instances: 1})
	m := loadOf(t, h, scripted(false).bytes())
	c, err := h.NewChain(t.Context(), []Step{{Name: "scripted", Module: m}}, Rules{MaxEvent: 20, MaxDepth: 2, Watch: pointers(t, "/k")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Retire()
	b := batchOf(`v{"a":1,"k":"v"}`, `v{"a":1,}`, `v[[[1]]]`, `v{"a":"xxxxxxxxxxxxxxxx"}`, "v", "0")
	b.Syntax = event.JSON
	for i := range b.Events {
		b.Events[i].Fields[event.FieldKey] = event.Span{Off: 1, Len: 1}
	}
	process(t, c, b)
	want := "accepted\n" + strings.Repeat("rejected plugin_failed\n", 4) + "accepted\n"
	if got := outcomes(b); got != want {
		t.Errorf("got\n%s want\n%s", got, want)
	}
	e := b.Events[0]
	span := e.Fields[event.FieldKey]
	if got := string(e.Data[span.Off:][:span.Len]); got != `"v"` {
		t.Errorf("key field of the new bytes: %s", got)
	}
}

func TestReplacedValuesKeepWithinTheBudget(t *testing.T) {
	h := hostOf(t, Config{Instances: 1})
	c := chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, scripted(false).bytes())})
	b := batchOf("V" + strings.Repeat("x", 480<<10)) // 1 MiB <= 2 x 480 KiB + 64 KiB
	process(t, c, b)
	if got := outcomes(b); got != "accepted\n" || len(b.Events[0].Data) != 1<<20 {
		t.Errorf("got %s, %d bytes", got, len(b.Events[0].Data))
	}
}
