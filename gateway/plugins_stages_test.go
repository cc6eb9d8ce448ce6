package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
)

// told writes a list as the tests of it have it.
func told(list []activation) string {
	var all []string
	for _, a := range list {
		text := a.Plugin + a.Digest
		if a.stage() != config.StageActive {
			text += ":" + a.stage() + strings.TrimSuffix(fmt.Sprint(a.Percent), "0")
		}
		for _, e := range a.History {
			text += "<" + e.Digest
		}
		if a.Suspended != nil {
			text += "!"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

// What becomes of a chain, step by step.
func TestWhatBecomesOfAChain(t *testing.T) {
	active := func(name string) func([]activation) ([]activation, error) {
		return func(list []activation) ([]activation, error) {
			return enact(list, activation{Plugin: name[:1], Digest: name[1:]}), nil
		}
	}
	tried := func(name, stage string, percent int) func([]activation) ([]activation, error) {
		return func(list []activation) ([]activation, error) {
			return enact(list, activation{Plugin: name[:1], Digest: name[1:], Stage: stage, Percent: percent}), nil
		}
	}
	there := func(digest string) bool { return digest != "3" }
	back := func(list []activation) ([]activation, error) { return rollBack(list, "p", there) }
	suspended := func(list []activation) ([]activation, error) {
		list[0].Suspended = &admin.Suspension{}
		return list, nil
	}
	var list []activation
	for i, step := range []struct {
		do   func([]activation) ([]activation, error)
		want string
	}{
		{active("p1"), "p1"},
		{active("q1"), "p1 q1"},
		{active("p1"), "p1 q1"}, // nothing to go back to
		{active("p2"), "p2<1 q1"},
		{tried("p3", "shadow", 0), "p2<1 p3:shadow q1"},
		{tried("r1", "canary", 5), "p2<1 p3:shadow q1 r1:canary5"},
		{tried("p3", "canary", 1), "p2<1 p3:canary1 q1 r1:canary5"}, // one is tried at a time
		{func(l []activation) ([]activation, error) { return promote(l, "p") }, "p3<2<1 q1 r1:canary5"},
		{active("r1"), "p3<2<1 q1 r1"}, // promoted as well
		{active("p4"), "p4<3<2<1 q1 r1"},
		{tried("p5", "canary", 2), "p4<3<2<1 p5:canary2 q1 r1"},
		{back, "p4<3<2<1 q1 r1"}, // a canary ends first
		{tried("p5", "shadow", 0), "p4<3<2<1 p5:shadow q1 r1"},
		{back, "p2<1 p5:shadow q1 r1"}, // 3 was deleted
		{suspended, "p2<1! p5:shadow q1 r1"},
		{func(l []activation) ([]activation, error) { return resume(l, "p") }, "p2<1 p5:shadow q1 r1"},
		{suspended, "p2<1! p5:shadow q1 r1"},
		{active("p2"), "p2<1 p5:shadow q1 r1"}, // lifts it too
		{func(l []activation) ([]activation, error) { return withdraw(l, "p", "shadow") }, "p2<1 q1 r1"},
		{back, "p1 q1 r1"},
		{func(l []activation) ([]activation, error) { return withdraw(l, "p", "") }, "q1 r1"},
	} {
		var err error
		if list, err = step.do(list); err != nil || told(list) != step.want {
			t.Fatalf("step %d: %s, want %s (%v)", i, told(list), step.want, err)
		}
	}
	_, err := withdraw(list, "q", "shadow")
	wantCode(t, err, event.UnknownPlugin)
	for name, f := range map[string]func() ([]activation, error){
		"rollback of nothing":   func() ([]activation, error) { return rollBack(list, "p", there) },
		"rollback without past": func() ([]activation, error) { return rollBack(list, "q", there) },
		"promote of nothing":    func() ([]activation, error) { return promote(list, "q") },
		"resume of what runs":   func() ([]activation, error) { return resume(list, "q") },
	} {
		_, err := f()
		if p, ok := errors.AsType[*event.Problem](err); !ok || p.Code != event.NothingToDo {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range 2 * mostEarlier {
		list, _ = active(fmt.Sprintf("q%d", len(list[0].History)+100))(list)
	}
	if n := len(list[0].History); n != mostEarlier {
		t.Errorf("%d versions are remembered", n)
	}
}

// version uploads the scripted module as one more version, which does the same, and returns its digest.
func (in *instance) version(plugin string, number int) string {
	in.t.Helper()
	custom := append([]byte{4, 't', 'e', 's', 't'}, fmt.Sprint(number)...)
	wasm := append(scriptedModule(in.t), append([]byte{0, byte(len(custom))}, custom...)...)
	v, _, err := in.Upload(in.t.Context(), plugin, wasm, nil)
	if err != nil || slices.ContainsFunc(v.Checks, func(c admin.Check) bool { return !c.OK }) {
		in.t.Fatalf("%+v %v", v, err)
	}
	return v.Digest
}

func (in *instance) activate(a admin.Activation) []admin.Activation {
	in.t.Helper()
	chain, err := in.Activate(in.t.Context(), "web", a)
	if err != nil {
		in.t.Fatal(err)
	}
	return chain
}

// served sends an event as a producer and returns the chain that processed it.
func (in *instance) served(producer string) string {
	in.t.Helper()
	status, answer := in.postWith("/v1/streams/web/events", `0`+"\n", "Content-Type: text/plain", "Headgate-Source: "+producer)
	var sum struct{ Chain string }
	if err := json.Unmarshal([]byte(answer), &sum); err != nil || status != 200 {
		in.t.Fatalf("%d %s", status, answer)
	}
	return sum.Chain
}

// Stages through the gateway: they survive a restart, the answer and the stored event say which versions processed them, and
// one call goes back.
func TestL12StagesSurviveARestartAndGoBack(t *testing.T) {
	cfg := zero(t)
	in := start(t, cfg)
	one, two, three := in.version("p", 1), in.version("p", 2), in.version("p", 3)
	in.activate(admin.Activation{Plugin: "p", Digest: one})
	in.activate(admin.Activation{Plugin: "p", Digest: two})
	in.activate(admin.Activation{Plugin: "p", Digest: three, Stage: "canary", Percent: 50})
	count := func() (canary int) {
		for i := range 40 {
			switch got := in.served(fmt.Sprint("producer", i)); got {
			case three:
				canary++
			case two:
			default:
				t.Fatalf("processed by %s", got)
			}
		}
		return canary
	}
	before := count()
	if before < 8 || before > 32 {
		t.Errorf("%d of 40 producers are the canary's", before)
	}
	in.end()

	in = start(t, cfg)
	defer in.end()
	if after := count(); after != before {
		t.Errorf("%d producers after the restart, %d before", after, before)
	}
	chain, err := in.Chain(t.Context(), "web")
	if err != nil || len(chain) != 2 || chain[0].Digest != two || chain[0].Stage != "active" || len(chain[0].History) != 1 || chain[1].Stage != "canary" || chain[1].Percent != 50 {
		t.Fatalf("%+v %v", chain, err)
	}
	d, err := in.Stream(t.Context(), "web")
	if err != nil || !strings.Contains(string(d.Document), `"stage":"canary","percent":50`) {
		t.Errorf("%s %v", d.Document, err)
	}
	if p, err := in.Plugin(t.Context(), "p"); err != nil || len(p.Uses) != 2 || p.Uses[1].Comparison == nil {
		t.Errorf("%+v %v", p, err)
	}
	wantCode(t, in.DeletePlugin(t.Context(), "p", three), event.PluginInUse)
	for _, want := range []string{two, one} { // the canary ends, then the version before is back
		if _, err := in.Change(t.Context(), "web", admin.Change{Do: admin.RollBack, Plugin: "p"}); err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if got := in.served(fmt.Sprint("producer", i)); got != want {
				t.Errorf("processed by %s, want %s", got, want)
			}
		}
	}
	_, err = in.Change(t.Context(), "web", admin.Change{Do: admin.RollBack, Plugin: "p"})
	wantCode(t, err, event.NothingToDo)
	_, err = in.Activate(t.Context(), "web", admin.Activation{Plugin: "p", Stage: "canary"})
	wantCode(t, err, event.BadConfiguration)
}

// What is only tried and does not load at a start keeps no stream from taking events, and is named.
func TestAShadowThatDoesNotLoadHurtsNobody(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"web": {Plugins: []config.Plugin{{Name: "gone", Stage: "shadow"}}}}
	in := start(t, cfg)
	defer in.end()
	in.want(200, `"accepted":1`, "web", `0`)
	if detail, ok := in.pluginsDetail(); !ok || !strings.Contains(detail, "stream web: what is tried does not run") {
		t.Errorf("readiness: %v %q", ok, detail)
	}
	if _, _, err := in.Upload(t.Context(), "gone", scriptedModule(t), nil); err != nil {
		t.Fatal(err)
	}
	if chain, err := in.Chain(t.Context(), "web"); err != nil || len(chain) != 1 || chain[0].Comparison == nil {
		t.Errorf("it runs once it is uploaded: %+v %v", chain, err)
	}
	for _, bad := range []config.Plugin{{Name: "p", Stage: "ghost"}, {Name: "p", Stage: "canary"}, {Name: "p", Percent: 5}, {Name: "p", OnSuspend: "never"}} {
		c := config.Stream{Plugins: []config.Plugin{bad}}.WithDefaults()
		if err := c.Problem(); err == nil || !strings.Contains(err.Error(), "plugins.0.stage") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	c := config.Stream{Plugins: []config.Plugin{{Name: "p"}, {Name: "p", Stage: "shadow"}, {Name: "p", Stage: "shadow"}}}.WithDefaults()
	if err := c.Problem(); err == nil || !strings.Contains(err.Error(), "already") {
		t.Error(err)
	}
}

// A definition's plugins take part in stages and histories like activated ones.
func TestDefinitionsHaveStagesAndHistories(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	one, two := in.version("p", 1), in.version("p", 2)
	set := func(plugins string) {
		t.Helper()
		if _, _, err := in.SetStream(t.Context(), "web", json.RawMessage(`{"plugins":`+plugins+`}`), admin.Match{}); err != nil {
			t.Fatal(err)
		}
	}
	set(`[{"name":"p","digest":"` + one + `"}]`)
	set(`["p",{"name":"p","digest":"` + one + `","stage":"shadow"}]`)
	chain, err := in.Chain(t.Context(), "web")
	if err != nil || len(chain) != 2 || chain[0].Digest != two || len(chain[0].History) != 1 || chain[0].History[0].Digest != one || chain[1].Stage != "shadow" {
		t.Errorf("%+v %v", chain, err)
	}
}

// A version that is suspended: its events go by on_error, or the version before takes them; readiness and metrics name it,
// also after a restart, and it runs again when that is lifted.
func TestL10ASuspendedVersionIsNamedAndLifted(t *testing.T) {
	for _, instead := range []string{"", "previous"} {
		cfg := zero(t)
		in := start(t, cfg)
		one, two := in.version("p", 1), in.version("p", 2)
		in.activate(admin.Activation{Plugin: "p", Digest: one})
		in.activate(admin.Activation{Plugin: "p", Digest: two, OnError: "default_key=none", OnSuspend: instead})
		s, err := in.find("web")
		if err != nil {
			t.Fatal(err)
		}
		in.suspend(s, suspect{"p", two, "active", "it was asked for"})
		in.suspend(s, suspect{"p", "sha256:other", "active", "it is not there any more"})
		in.end()

		in = start(t, cfg)
		want := map[string]string{"": `"chain":"` + two + `"`, "previous": `"chain":"` + one + `"`}[instead]
		status, answer := in.postWith("/v1/streams/web/events?dry_run=true", "kx\n", "Content-Type: text/plain")
		key := map[string]string{"": `"key":"none"`, "previous": `"key":"x"`}[instead]
		if status != 200 || !strings.Contains(answer, want) || !strings.Contains(answer, key) {
			t.Errorf("%q: %d %s", instead, status, answer)
		}
		if instead == "" && !strings.Contains(answer, "SUSPENDED") {
			t.Errorf("the answer does not say why: %s", answer)
		}
		if detail, ok := in.pluginsDetail(); !ok || !strings.Contains(detail, "plugin p (active, "+two[:15]+") is suspended since") || !strings.Contains(detail, "it was asked for") {
			t.Errorf("readiness: %v %q", ok, detail)
		}
		if n := in.value("headgate_plugin_suspended"); n != 1 {
			t.Errorf("metric %v", n)
		}
		if instead == "previous" {
			wantCode(t, in.DeletePlugin(t.Context(), "p", one), event.PluginInUse)
		}
		d, err := in.Stream(t.Context(), "web") // read and written again, it is the same
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := in.SetStream(t.Context(), "web", d.Document, admin.Match{}); err != nil || in.value("headgate_plugin_suspended") != 1 {
			t.Errorf("a change of the definition lifts it: %v", err)
		}
		chain, err := in.Change(t.Context(), "web", admin.Change{Do: admin.Resume, Plugin: "p"})
		if err != nil || chain[0].Suspended != nil || in.served("x") != two || in.value("headgate_plugin_suspended") != 0 {
			t.Errorf("%+v %v", chain, err)
		}
		in.end()
	}
}

// When the version before is no better, the one before that takes the events, and in the end on_error.
func TestL10VersionsBeforeAreSuspendedToo(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	all := []string{in.version("p", 1), in.version("p", 2), in.version("p", 3)}
	for _, digest := range all {
		in.activate(admin.Activation{Plugin: "p", Digest: digest, OnError: "pass", OnSuspend: "previous"})
	}
	s, err := in.find("web")
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		in.suspend(s, suspect{"p", all[2-i], "active", "it was asked for"})
		want := all[2] // which is not called
		if i < 2 {
			want = all[1-i]
		}
		if got := in.served("x"); got != want {
			t.Errorf("%d are suspended: processed by %s, want %s", i+1, got, want)
		}
	}
	chain, err := in.Chain(t.Context(), "web")
	if err != nil || len(chain) != 1 || strings.Count(chain[0].Suspended.Reason, "it was asked for") != 3 || len(chain[0].History) != 0 {
		t.Errorf("%+v %v", chain, err)
	}
}

// A suspended canary leaves its requests to the version in force.
func TestL10ASuspendedCanaryServesNobody(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	one, two := in.version("p", 1), in.version("p", 2)
	in.activate(admin.Activation{Plugin: "p", Digest: one})
	in.activate(admin.Activation{Plugin: "p", Digest: two, Stage: "canary", Percent: 100})
	if got := in.served("x"); got != two {
		t.Fatal(got)
	}
	s, err := in.find("web")
	if err != nil {
		t.Fatal(err)
	}
	in.suspend(s, suspect{"p", two, "canary", "it was asked for"})
	if got := in.served("x"); got != one {
		t.Errorf("processed by %s", got)
	}
	if chain := in.activate(admin.Activation{Plugin: "p", Digest: two, Stage: "canary", Percent: 100}); chain[1].Suspended != nil || in.served("x") != two {
		t.Errorf("%+v", chain)
	}
}

// value is the sum of a metric's series.
func (in *instance) value(name string) (sum float64) {
	in.t.Helper()
	families, err := in.metrics.Gather()
	if err != nil {
		in.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.Metric {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}
