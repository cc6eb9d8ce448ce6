package gateway

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/gateway/config"
)

func scriptedModule(t *testing.T) []byte {
	t.Helper()
	wasm, err := os.ReadFile("../plugins/testdata/scripted.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// pluginsDetail is what readiness says of plugins.
func (in *instance) pluginsDetail() (detail string, ok bool) {
	all := in.Dependencies()
	i := slices.IndexFunc(all, func(d admin.Dependency) bool { return d.Name == "plugins" })
	return all[i].Detail, all[i].OK
}

// TestThePluginOfTheFileIsUploadedLater: the stream takes events from then on, without another word.
func TestThePluginOfTheFileIsUploadedLater(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"web": {Plugins: []config.Plugin{{Name: "p"}}}}
	in := start(t, cfg)
	defer in.end()
	in.want(503, "plugin_unavailable", "web", `0`)
	if _, _, err := in.Upload(t.Context(), "other", scriptedModule(t), nil); err != nil {
		t.Fatal(err)
	}
	in.want(503, "plugin_unavailable", "web", `0`)
	if _, _, err := in.Upload(t.Context(), "p", scriptedModule(t), nil); err != nil {
		t.Fatal(err)
	}
	in.want(200, `"accepted":1`, "web", `0`)
	if detail, ok := in.pluginsDetail(); !ok || detail != "" {
		t.Errorf("readiness: %v %q", ok, detail)
	}
}

// TestWhatTheFileSaysOfPluginsAndIsNotInForceIsSaid, and a reset gives them back to the file.
func TestWhatTheFileSaysOfPluginsAndIsNotInForceIsSaid(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"web": {Plugins: []config.Plugin{{Name: "p", OnError: "pass"}}}}
	in := start(t, cfg)
	if _, _, err := in.Upload(t.Context(), "p", scriptedModule(t), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Activate(t.Context(), "web", admin.Activation{Plugin: "p", OnError: "reject"}); err != nil {
		t.Fatal(err)
	}
	in.end()

	in = start(t, cfg)
	detail, ok := in.pluginsDetail()
	if !ok || !strings.Contains(detail, `"on_error":"pass"`) || !strings.Contains(detail, `"on_error":"reject"`) ||
		!strings.Contains(detail, "headgate plugin reset --stream web") {
		t.Errorf("readiness: %v %q", ok, detail)
	}
	if chain, err := in.Reset(t.Context(), "web"); err != nil || len(chain) != 1 || chain[0].OnError != "pass" {
		t.Errorf("%+v, %v", chain, err)
	}
	in.end()

	cfg.Streams = map[string]config.Stream{"web": {}} // from now on the file is followed
	in = start(t, cfg)
	defer in.end()
	if chain, err := in.Chain(t.Context(), "web"); err != nil || len(chain) != 0 {
		t.Errorf("%+v, %v", chain, err)
	}
	if detail, _ := in.pluginsDetail(); detail != "" {
		t.Errorf("readiness: %q", detail)
	}
}

// TestADryRunNamesAPluginThatFails where the event goes on all the same.
func TestADryRunNamesAPluginThatFails(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	if _, _, err := in.Upload(t.Context(), "trap", scriptedModule(t), nil); err != nil {
		t.Fatal(err)
	}
	for _, policy := range []string{"pass", "default_key=zz"} {
		if _, err := in.Activate(t.Context(), "web", admin.Activation{Plugin: "trap", OnError: policy}); err != nil {
			t.Fatal(err)
		}
		in.wantText("web/events?dry_run=true", "t", `"verdict":"accepted"`, `"failed":"plugin trap failed on this event: TRAP`)
	}
}

func (in *instance) wantText(query, body string, parts ...string) {
	in.t.Helper()
	_, doc := in.call("POST", "http://"+in.addresses.http.String()+"/v1/streams/"+query, "text/plain", body)
	for _, part := range parts {
		if !strings.Contains(doc, part) {
			in.t.Errorf("%s <- %s: %s lacks %s", query, body, doc, part)
		}
	}
}
