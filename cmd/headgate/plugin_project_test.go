package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPluginInitRefuses(t *testing.T) {
	dir := t.TempDir()
	full := filepath.Join(dir, "full")
	command(t, "", "plugin", "init", "--lang", "c", full).expect(t, 0)
	source := filepath.Join(full, "plugin.c")
	if err := os.WriteFile(source, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, "", "plugin", "init", "--lang", "c", full).expect(t, exitUsage, "nothing was written")
	if text, err := os.ReadFile(source); err != nil || string(text) != "mine" {
		t.Errorf("%q %v", text, err)
	}
	command(t, "", "plugin", "init", filepath.Join(dir, "a")).expect(t, exitUsage, "give --lang go, rust, c, assemblyscript")
	command(t, "", "plugin", "init", "--lang", "cobol", filepath.Join(dir, "a")).expect(t, exitUsage, "go, rust, c, assemblyscript")
	for _, name := range []string{"Demo", "1a", "a b", "headgate", strings.Repeat("a", 65)} {
		command(t, "", "plugin", "init", "--lang", "c", filepath.Join(dir, name)).expect(t, exitUsage, "can't be a plugin's name")
	}
}

// A tool that is missing is named, with how to get it.
func TestPluginBuildNamesTheMissingTool(t *testing.T) {
	dir := t.TempDir()
	for lang, want := range map[string][]string{
		"go": {"tool go", "apt-get install golang"}, "rust": {"tool rustc", "rustup.rs", "apt-get install rustc"},
		"c": {"clang", "apt-get install clang-19 lld-19"}, "assemblyscript": {"tool node", "apt-get install nodejs npm"},
	} {
		command(t, "", "plugin", "init", "--lang", lang, filepath.Join(dir, lang)).expect(t, 0)
		t.Run(lang, func(t *testing.T) {
			t.Setenv("PATH", t.TempDir())
			command(t, "", "plugin", "build", filepath.Join(dir, lang)).expect(t, exitFailed, want...)
		})
	}
	command(t, "", "plugin", "test", filepath.Join(dir, "c")).expect(t, exitUsage, "not there yet: make it with headgate plugin build")
	command(t, "", "plugin", "build", dir).expect(t, exitUsage, "no headgate.json", "plugin init")
}

// The module brings the tests of its folder, and the gateway would run them.
func TestTestsAreInTheModule(t *testing.T) {
	b, err := product()
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := os.ReadFile(b.accesslog)
	if err != nil {
		t.Fatal(err)
	}
	p := &project{dir: t.TempDir(), Name: "demo", Language: "go", Config: []byte(`{"drop_status_from":500}`), Events: "e", Expect: "x"}
	write := func(file string, text string) {
		t.Helper()
		if err := os.WriteFile(p.path(file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	doc, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	write("headgate.json", string(doc))
	write("demo.wasm", string(wasm))
	write("e", `{"remote_ip":"a"}`+"\n"+`{"response":500}`+"\n\n{broken\n")
	write("x", `{"verdict":"kept","key":"a"}`+"\n"+`{"verdict":"kept","key":null}`+"\n"+`{"verdict":"rejected"}`+"\n")
	if n, why, err := p.embed(); n != 2 || why != nil || err != nil {
		t.Fatalf("%d %v %v", n, why, err)
	}
	command(t, "", "plugin", "test", p.module()).expect(t, exitFailed, `E_SELFTEST test 2: expected {"verdict":"kept","key":null}, came out {"verdict":"filtered","key":null}; the event is {"response":500}`)
	command(t, "", "plugin", "test", p.dir).expect(t, exitFailed, `event 2: expected {"verdict":"kept","key":null}`)
	command(t, "", "plugin", "test", p.dir, "--accept").expect(t, 0)
	if r := command(t, "", "plugin", "test", p.module()).expect(t, 0); !strings.Contains(r.out, "its 2 tests came out as they say") {
		t.Errorf("%s", r.out)
	}
	write("x", "")
	if n, why, err := p.embed(); n != 0 || why == nil || err != nil {
		t.Errorf("%d %v %v", n, why, err)
	}
	command(t, "", "plugin", "test", p.module()).expect(t, exitUsage, "brings no tests; give --events")
}

func TestPluginTestComparesWithExpectations(t *testing.T) {
	b, err := product()
	if err != nil {
		t.Fatal(err)
	}
	events := temporary(t, "e.ndjson", `{"remote_ip":"a"}`+"\n"+`{"response":500}`+"\n{broken\n")
	line := []string{"plugin", "test", b.accesslog, "--events", events, "--config", `{"drop_status_from":500}`, "--expect"}
	good := `{"verdict":"kept","key":"a"}` + "\n" + `{"verdict":"filtered","key":null}` + "\n" + `{"verdict":"rejected"}` + "\n"
	if r := command(t, "", append(line, temporary(t, "x", good))...).expect(t, 0); !strings.HasSuffix(r.out, " expects\n") {
		t.Errorf("%s", r.out)
	}
	command(t, "", append(line, temporary(t, "x", strings.Replace(good, `"a"`, `"b"`, 1)))...).
		expect(t, exitFailed, `event 1: expected {"verdict":"kept","key":"b"}`, "1 of 3 events")
	command(t, "", append(line, temporary(t, "x", strings.Replace(good, `"rejected"`, `"rejected","code":"too_deep"`, 1)))...).
		expect(t, exitFailed, "event 3: expected")
	command(t, "", append(line, temporary(t, "x", good+good))...).expect(t, exitFailed, "3 more events")
	command(t, "", append(line, temporary(t, "x", good[:29]))...).expect(t, exitFailed, "no more events")
	command(t, "", append(line, temporary(t, "x", `{"verdct":"kept"}`))...).expect(t, exitUsage, "line 1", "verdct")

	file := temporary(t, "x", "")
	command(t, "", append(line, file, "--accept")...).expect(t, 0)
	text, err := os.ReadFile(file)
	if err != nil || string(text) != strings.Replace(good, `"rejected"}`, `"rejected","key":null,"code":"malformed_json"}`, 1) {
		t.Errorf("%v %s", err, text)
	}
	command(t, "", append(line, file)...).expect(t, 0)
}
