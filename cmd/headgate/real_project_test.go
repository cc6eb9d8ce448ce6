package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/sdk"
)

// needToolchain skips a test whose language can't be compiled here, and says what is missing.
func needToolchain(t *testing.T, lang string) {
	t.Helper()
	steps, err := (&project{dir: t.TempDir(), Name: "demo", Language: lang}).toolchain()
	if err != nil {
		t.Skip(err)
	}
	if steps[0].args[0] == "npm" {
		t.Skip("the compiler asc is not installed, and to fetch it takes the network: npm install -g assemblyscript@0.28.20")
	}
}

// in runs a command in a folder; stdout and stderr come together.
func (p *process) in(dir string, code int, args ...string) string {
	p.t.Helper()
	cmd := exec.Command(p.bin, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HEADGATE_URL="+p.http, "HEADGATE_ADMIN_URL="+p.admin)
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("headgate %s: exit %d, want %d\n%s", strings.Join(args, " "), got, code, out)
	}
	return string(out)
}

// From nothing to a live plugin, with the commands of docs/plugins.md.
func TestL17FromScaffoldToLivePlugin(t *testing.T) {
	p := startGateway(t, t.TempDir())
	for _, lang := range sdk.Languages() {
		t.Run(lang, func(t *testing.T) {
			needToolchain(t, lang)
			live := *p
			live.t = t
			live.fromScaffold(lang)
		})
	}
}

func (p *process) fromScaffold(lang string) {
	t, work := p.t, p.t.TempDir()
	p.in(work, 0, "plugin", "init", "--lang", lang, "demo")
	dir := filepath.Join(work, "demo")
	if out := p.in(dir, 0, "plugin", "build"); !strings.Contains(out, "demo.wasm (") || !strings.Contains(out, "bytes, 6 tests)") {
		t.Errorf("%s", out)
	}
	if out := p.in(dir, 0, "plugin", "test"); !strings.Contains(out, "6 events: 6 kept") || !strings.Contains(out, "all as expect.ndjson expects") {
		t.Errorf("%s", out)
	}
	var cost benchResult
	if err := json.Unmarshal([]byte(p.in(dir, 0, "plugin", "bench", "--rounds", "1", "-o", "json")), &cost); err != nil {
		t.Fatal(err)
	}
	if cost.Bytes != 28 && cost.Bytes != 27 || cost.Check <= 0 || cost.Plugin <= 0 || cost.Memory < 64<<10 {
		t.Errorf("%+v", cost)
	}
	if out := p.in(dir, 0, "plugin", "test", "demo.wasm"); !strings.Contains(out, "its 6 tests came out as they say") {
		t.Errorf("%s", out)
	}
	p.in(dir, 0, "plugin", "push", "demo-"+lang)
	p.in(dir, 0, "plugin", "activate", "--stream", lang, "demo-"+lang)
	if out := p.in(dir, 0, "send", "--stream", lang, "events.ndjson"); !strings.Contains(out, `"accepted":6`) {
		t.Errorf("%s", out)
	}
	keys := map[string]int{}
	for _, r := range p.tail(lang) {
		key := "no key"
		if r.Key != nil {
			key = "key " + *r.Key
		}
		keys[key]++
	}
	if len(keys) != 4 || keys["key ada"] != 1 || keys["key gråce"] != 1 || keys["key "] != 1 || keys["no key"] != 3 {
		t.Errorf("%v", keys)
	}
}
