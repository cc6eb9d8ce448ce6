package plugins

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/plugins/meter"
	"github.com/headgate-io/headgate/sdk/abi"
)

// withTests is the scripted guest with a section of tests.
func withTests(t *testing.T, doc string) []byte {
	t.Helper()
	wasm, err := meter.WithCustom(scripted(false).bytes(), abi.TestSection, []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func TestSelfTests(t *testing.T) {
	h := hostOf(t, Config{})
	opaque := func(tests ...string) string { return `{"syntax":"opaque","tests":[` + strings.Join(tests, ",") + `]}` }
	const kept = `{"event":"kada","expect":{"verdict":"kept","key":"ada"}}`
	for _, c := range []struct {
		name, doc string
		faults    []string // a part of each; none: it passes
	}{
		{"none", `{"tests":[]}`, nil},
		{"each verdict", opaque(kept, `{"event":"e","expect":{"verdict":"kept","key":""}}`, `{"event":"0","expect":{"verdict":"kept","key":null}}`,
			`{"event":"d","expect":{"verdict":"filtered"}}`, `{"event":"r","expect":{"verdict":"rejected","reason":7}}`,
			`{"event":"r","expect":{"verdict":"rejected"}}`, `{"event":"vnew","expect":{"verdict":"kept","key":null,"data":"new"}}`), nil},
		{"bytes that are no text", opaque(`{"event_base64":"a/8=","expect":{"verdict":"kept","key":null,"key_base64":"/w=="}}`), nil},
		{"headers", opaque(`{"event":"kx","headers":{"x-a":"1"},"expect":{"verdict":"kept","key":"x"}}`, kept), nil},
		{"JSON by itself", `{"tests":[{"event":"0","expect":{"verdict":"kept","key":null}}]}`, nil},
		{"another key", opaque(kept, `{"name":"of grace","event":"kgrace","expect":{"verdict":"kept","key":"Grace"}}`),
			[]string{`test 2 (of grace): expected {"verdict":"kept","key":"Grace"}, came out {"verdict":"kept","key":"grace"}; the event is kgrace`}},
		{"another verdict", opaque(`{"event":"d","expect":{"verdict":"kept","key":null}}`), []string{`came out {"verdict":"filtered"`}},
		{"another value", opaque(`{"event":"vold","expect":{"verdict":"kept","key":null,"data":"new"}}`), []string{`"data":"old"}`}},
		{"a value, and none is expected", opaque(`{"event":"vold","expect":{"verdict":"kept","key":null}}`), []string{`"data":"old"}`}},
		{"another reason", opaque(`{"event":"r","expect":{"verdict":"rejected","reason":8}}`), []string{`"reason":7}: plugin self-test refused`}},
		{"a trap", opaque(kept, `{"event":"t","expect":{"verdict":"rejected","reason":1}}`, kept), []string{`test 2: expected`}},
		{"a trap that is expected is one still", opaque(`{"event":"t","expect":{"verdict":"kept","key":null}}`), []string{"TRAP"}},
		{"two", opaque(`{"event":"d","expect":{"verdict":"kept","key":null}}`, kept, `{"event":"e","expect":{"verdict":"filtered"}}`), []string{"test 1", "test 3"}},
		{"no JSON", `{"tests":[{"event":"kada","expect":{"verdict":"kept","key":"ada"}}]}`, []string{"test 1: its event is no JSON"}},
		{"a verdict that there is not", opaque(`{"event":"d","expect":{"verdict":"drop"}}`), []string{`kept, filtered or rejected, not "drop"`}},
		{"no tests but text", `tests`, []string{"its section hg.tests: invalid character"}},
		{"a member that there is not", `{"test":[]}`, []string{`unknown field "test"`}},
		{"a syntax that there is not", `{"syntax":"xml","tests":[]}`, []string{"json, text or opaque"}},
		{"a huge section", `{"tests":[]}` + strings.Repeat(" ", maxTestBytes), []string{"the limit is 262144"}},
	} {
		r, err := h.Admit(t.Context(), withTests(t, c.doc))
		if err != nil {
			t.Fatal(err)
		}
		var faults []string
		for _, check := range r.Checks {
			if check.Check == "selftest" && !check.OK {
				faults = append(faults, check.Code+" "+check.Detail)
			}
		}
		bad := len(faults) != len(c.faults) || r.OK() != (len(c.faults) == 0)
		for i := range min(len(faults), len(c.faults)) {
			bad = bad || !strings.HasPrefix(faults[i], "E_SELFTEST ") || !strings.Contains(faults[i], c.faults[i])
		}
		if bad {
			t.Errorf("%s: %q", c.name, faults)
		}
	}
}

// What tests do is in no metric, they know that nothing is stored, and their events come in batches.
func TestSelfTestsLeaveNoTrace(t *testing.T) {
	reg := prometheus.NewRegistry()
	h, err := New(Config{}, slog.New(slog.DiscardHandler), reg)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := h.Admit(t.Context(), withTests(t, `{"syntax":"opaque","tests":[{"event":"ka","expect":{"verdict":"kept","key":"a"}}]}`)); err != nil || !r.OK() {
		t.Fatalf("%v: %s", err, r.Failed())
	}
	families, err := reg.Gather()
	if err != nil || len(families) != 0 {
		t.Errorf("%v, %v", families, err)
	}
	// A guest that keeps an event only in a call of a trial with two events.
	result := func(at int32) string {
		res := get(0) + load(abi.CtlResults) + i32(at*abi.ResultSize) + add
		return res + i32(0) + store(abi.ResKey) + res + i32(0) + store(abi.ResKeyLen) // with verdict and code
	}
	code := get(0) + load(abi.CtlCount) + i32(2) + eq + get(0) + load(abi.CtlFlags) + i32(abi.FlagDryRun) + eq + mul + if_ + result(0) + result(1) + end +
		get(0) + get(0) + load(abi.CtlCount) + store(abi.CtlDone) + i32(0)
	wasm, err := meter.WithCustom(withFunction(base(), fnProcess, wasmFunction{"i:i", 0, code}).bytes(), abi.TestSection,
		[]byte(`{"tests":[{"event":"1","expect":{"verdict":"kept","key":null}},{"event":"2","expect":{"verdict":"kept","key":null}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := h.Admit(t.Context(), wasm); err != nil || !r.OK() {
		t.Errorf("%v: %s", err, r.Failed())
	}
}

// Of many tests that differ the first are told, and how many more there are.
func TestManySelfTestsThatDiffer(t *testing.T) {
	var tests Tests
	tests.Syntax = "opaque"
	for i := range 700 {
		tests.Tests = append(tests.Tests, Test{Event: fmt.Sprint("k", i), Expect: Outcome{Verdict: "filtered"}})
	}
	wasm, err := tests.Embed(scripted(false).bytes())
	if err != nil {
		t.Fatal(err)
	}
	r, err := hostOf(t, Config{}).Admit(t.Context(), wasm)
	if err != nil || len(r.Checks) != 8+mostSaid+1 || !strings.HasSuffix(r.Failed(), "and 690 more tests came out differently") {
		t.Errorf("%v: %d checks: %s", err, len(r.Checks), r.Failed())
	}
	tests.Tests = make([]Test, maxTests+1)
	if _, err := tests.Embed(wasm); err == nil {
		t.Error("too many tests were taken")
	}
}

// Whatever a test asks of the module is bounded like any call.
func TestSelfTestsAreBounded(t *testing.T) {
	tests := Tests{Syntax: "opaque"}
	for range 3 {
		tests.Tests = append(tests.Tests, Test{Event: "h", Expect: Outcome{Verdict: "kept"}})
	}
	wasm, err := tests.Embed(withFunction(base(), fnProcess, wasmFunction{"i:i", 0, loop + branch(0) + end + i32(0)}).bytes())
	if err != nil {
		t.Fatal(err)
	}
	r, err := hostOf(t, Config{Deadline: 1e6}).Admit(t.Context(), wasm)
	if err != nil || !strings.Contains(r.Failed(), "DEADLINE") {
		t.Errorf("%v: %s", err, r.Failed())
	}
}

// Embedding twice leaves one section, and the rest of the module as it was.
func TestTestsAreEmbeddedOnce(t *testing.T) {
	plain := base().bytes()
	first, err := (&Tests{Tests: []Test{{Event: "1", Expect: Outcome{Verdict: "kept"}}}}).Embed(plain)
	if err != nil {
		t.Fatal(err)
	}
	second, err := (&Tests{Config: json.RawMessage(`{"a":1}`), Tests: []Test{}}).Embed(first)
	if err != nil || !strings.HasPrefix(string(second), string(plain)) {
		t.Fatalf("%v", err)
	}
	if got, err := TestsOf(second); err != nil || len(got.Tests) != 0 || string(got.Config) != `{"a":1}` {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := TestsOf(plain); got != nil || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	twice := string(first) + strings.TrimPrefix(string(second), string(plain))
	if _, err := TestsOf([]byte(twice)); err == nil {
		t.Error("two sections were taken")
	}
}
