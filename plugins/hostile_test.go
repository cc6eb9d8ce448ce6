package plugins

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/abi"
)

// attack is a module that means harm, with how far it comes and what stops it.
type attack struct {
	ID, Name string
	Stage    string // upload, activate or event
	Code     string // E_... at upload; a kind of failure for an event; a part of the answer at activation
	wasm     func() []byte
}

// plugged is a module whose process misbehaves for events that start with a !; see hostile.
func plugged(code string, more ...wasmFunction) func() []byte {
	return func() []byte { return hostile(code, more...).bytes() }
}

// raw is a module of these sections.
func raw(sections ...string) func() []byte { return func() []byte { return rawModule(sections...) } }

func attacks() (all []attack) {
	for name, way := range stopped() {
		id := map[string]string{"recursion": "F63", "recursion with many locals": "F63", "calling the host": "F66"}[name]
		if id == "" {
			id = "F61"
		}
		all = append(all, attack{id, name, "event", way.kind, way.wasm.bytes})
	}
	slices.SortFunc(all, func(a, b attack) int { return strings.Compare(a.ID+a.Name, b.ID+b.Name) })
	growTable := func() []byte { return withTable(hostile(growTableCode)) }
	many := func(n int, item string) string { return leb(n) + strings.Repeat(item, n) }
	functions := func(code ...string) func() []byte { return raw(section(sectionCode, vector(code))) }
	slow := withFunction(base(), fnDeep, wasmFunction{":", 0, endless})
	return append(all,
		attack{"L19", "start runs for ever", "upload", codeInit, started(slow).bytes},
		attack{"L19", "_initialize runs for ever", "upload", codeInit, exporting(slow, wasmExport{abi.ExportInitialize, kindFunction, fnDeep}).bytes},
		attack{"L19", "hg_init runs for ever", "activate", "it took too long", withFunction(base(), fnInit, wasmFunction{"ii:i", 0, endless + i32(0)}).bytes},
		attack{"F62", "memory by the page", "event", "OOM", plugged(loop + i32(1) + memoryGrow + i32(-1) + eq + if_ + unreachable + end + branch(0) + end)},
		attack{"F62", "memory at once", "event", "TRAP", plugged(i32(60000) + memoryGrow + i32(-1) + eq + if_ + unreachable + end)},
		attack{"F62", "fills what is not there", "event", "TRAP", plugged(i32(0) + i32(1) + i32(-1) + fillAll)},
		attack{"F62", "memory to start with", "upload", codeLimit, withMemory(base(), "\x00"+leb(65536)).bytes},
		attack{"F65", "a table to start with", "upload", codeLimit, raw(section(sectionTable, "\x01\x70\x00"+leb(100_000_000)))},
		attack{"F65", "a table that grows", "event", "TRAP", growTable},
		attack{"F65", "filling a table in a loop", "event", "DEADLINE", func() []byte { return withTable(hostile(fillTableCode)) }},
		attack{"F64", "1e8 locals in 29 bytes", "upload", codeLimit, raw(section(sectionType, "\x01\x60\x00\x00"), section(sectionFunction, "\x01\x00"), section(sectionCode, vector([]string{body("", 100_000_000)})))},
		attack{"F64", "50,000 locals in 10,000 functions", "upload", codeLimit, raw(section(sectionType, "\x01\x60\x00\x00"), section(sectionFunction, many(10_000, "\x00")), section(sectionCode, many(10_000, body("", 50_000))))},
		attack{"F64", "one function of 300,000 bytes", "upload", codeLimit, functions(body(strings.Repeat(i32(1)+drop, 100_000)))},
		attack{"F64", "16,000 blocks in one another", "upload", codeLimit, functions(body(strings.Repeat(block, 16_000) + strings.Repeat(end, 16_000)))},
		attack{"F64", "100,000 functions", "upload", codeLimit, raw(section(sectionType, "\x01\x60\x00\x00"), section(sectionFunction, many(100_000, "\x00")), section(sectionCode, many(100_000, body(""))))},
		attack{"F64", "a large br_table", "upload", codeLimit, functions(body(i32(0) + "\x0e" + leb(30_000) + strings.Repeat("\x00", 30_001)))},
		attack{"F64", "much data", "upload", codeSize, raw(section(sectionData, "\x01\x01"+leb(8<<20)+strings.Repeat("x", 8<<20)))},
		attack{"F64", "counts of what is not there", "upload", codeMalformed, raw(section(sectionData, leb(90_000)))},
		attack{"F64", "blocks over many locals", "upload", codeCompileTime, func() []byte { return bomb(20) }},
		attack{"F66", "log lines", "event", "DEADLINE", plugged(loop + i32(abi.LevelError) + i32(0) + i32(64<<10) + call(fnLog) + branch(0) + end)},
		attack{"F66", "log lines from nowhere", "event", "DEADLINE", plugged(loop + i32(abi.LevelError) + i32(-1) + i32(-1) + call(fnLog) + branch(0) + end)},
		attack{"L16", "imports of its own", "upload", codeImport, importing(base(), wasmImport{"env", "system", kindFunction, "i:i"}).bytes},
		attack{"L16", "imports the meter", "upload", codeImport, importing(base(), wasmImport{"hg", "yield", kindFunction, "I:I"}).bytes},
		attack{"L10", "a trap", "event", "TRAP", plugged(unreachable)},
		attack{"L10", "reads behind the memory", "event", "TRAP", plugged(i32(-4) + load(0) + drop)},
		attack{"L10", "a division by zero", "event", "TRAP", plugged(i32(1) + i32(0) + "\x6d" + drop)},
		attack{"L10", "an indirect call to nothing", "event", "TRAP", func() []byte { return withTable(hostile(i32(0) + "\x11\x05\x00")) }},
		attack{"L10", "exit", "event", "EXIT", plugged(i32(3) + call(fnExit))},
		attack{"L10", "no result", "event", "NOT_WRITTEN", plugged("")},
		attack{"L10", "a key behind the memory", "event", "BAD_RESULT", plugged(keep(i32(-16), i32(0xFFFF)))},
		attack{"L10", "a value of 4 GiB", "event", "BAD_RESULT", plugged(replace(i32(-1), i32(-1)))},
		attack{"L01", "no module", "upload", codeMalformed, func() []byte { return bytes.Repeat([]byte("<html>"), 1000) }},
	)
}

// growTableCode grows the table until it traps, by 10,000 elements a time.
const growTableCode = "\x03\x40" + "\xd0\x70" + "\x41\x90\xce\x00" + "\xfc\x0f\x00" + "\x41\x7f\x46\x04\x40\x00\x0b" + "\x0c\x00\x0b"

// fillTableCode makes the table nearly as large as it may be, and then fills it for ever.
const fillTableCode = "\xd0\x70" + "\x41\x90\xbf\x05" + "\xfc\x0f\x00" + "\x1a" + "\x03\x40" + "\x41\x00" + "\xd0\x70" + "\x41\x90\xbf\x05" + "\xfc\x11\x00" + "\x0c\x00\x0b"

// withTable is m with a table of one element, without a maximum.
func withTable(m wasmModule) []byte {
	wasm := string(m.bytes())
	at := strings.Index(wasm, section(sectionMemory, vector(m.memories)))
	return []byte(wasm[:at] + section(sectionTable, "\x01\x70\x00\x01") + wasm[at:])
}

// Cases L05, L10, L16, L19 and F61 to F67: each is stopped, by its name, and nothing but the event it misbehaved on is
// lost to the plugin.
func TestL05L10L16L19F61F62F63F64F65F66HostileModules(t *testing.T) {
	for _, a := range attacks() {
		t.Run(a.ID+" "+a.Name, func(t *testing.T) {
			cfg := Config{Instances: 1, MaxMemory: 16 << 20, InitTime: 200 * time.Millisecond, CacheDir: t.TempDir()}
			if a.Code == "FUEL" {
				cfg.Deadline = hardDeadline
			}
			h := hostOf(t, cfg)
			if a.Code == codeCompileTime {
				h = apartHostOf(t, cfg)
				h.compileLimits.seconds = 1
			}
			r, err := h.Admit(t.Context(), a.wasm())
			if a.Stage == "upload" {
				if err != nil || r.OK() || !slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Code == a.Code }) {
					t.Errorf("%v %+v, want %s", err, r.Checks, a.Code)
				}
				return
			}
			if err != nil || !r.OK() {
				t.Fatalf("%v %s", err, r.Failed())
			}
			m := loadOf(t, h, a.wasm())
			if a.Stage == "activate" {
				if _, err := h.NewChain(t.Context(), []Step{{Name: "hostile", Module: m}}, Rules{}); err == nil || !strings.Contains(err.Error(), a.Code) {
					t.Errorf("%v, want %s", err, a.Code)
				}
				return
			}
			c := chainOf(t, h, Step{Name: "hostile", Module: m})
			b := batchOf("ka", "!", "kb", "kc")
			process(t, c, b)
			if got, want := outcomes(b), "accepted key=a\nrejected plugin_failed\naccepted key=b\naccepted key=c\n"; got != want {
				t.Errorf("got\n%s want\n%s", got, want)
			}
			if len(b.Errors) != 1 || !strings.Contains(b.Errors[0].Detail, a.Code) {
				t.Errorf("errors %v, want %s", b.Errors, a.Code)
			}
			if n := c.places[0].active.bill.memory.Load(); n > int64(cfg.MaxMemory) {
				t.Errorf("%d bytes of memory", n)
			}
		})
	}
}

// A guest that says it was at another event than it was: whatever it says, each event has one outcome, and those that it
// gave no result for are not believed to be processed.
func TestF67GuestsThatLieAboutDone(t *testing.T) {
	for _, done := range []int32{0, 1, 2, 3, 4, 1000, -1, math.MinInt32} {
		m := hostile(get(lctl) + i32(done) + store(abi.CtlDone) + unreachable)
		h := hostOf(t, Config{Instances: 1})
		c := chainOf(t, h, Step{Name: "liar", Module: loadOf(t, h, m.bytes())})
		b := batchOf("ka", "kb", "!", "kc")
		process(t, c, b)
		counts := b.Counts()
		if counts.Accepted+counts.Rejected != 4 || counts.Rejected == 0 {
			t.Errorf("done %d: %+v\n%s", done, counts, outcomes(b))
		}
		for i, e := range b.Events {
			if e.Verdict == event.Keep && (!e.HasKey || string(e.Key) != string(e.Data[1:])) {
				t.Errorf("done %d: event %d passed without its key", done, i)
			}
		}
	}
}

// A guest that overwrites the control block: the host believes what it wrote there itself, and reads nothing but done.
func TestF67GuestsThatOverwriteTheControlBlock(t *testing.T) {
	code := ""
	for at := 0; at < abi.ControlSize; at += 4 {
		if at != abi.CtlDone {
			code += get(0) + i32(-1) + store(at)
		}
	}
	m := withFunction(base(), fnProcess, wasmFunction{"i:i", 0, code + i32(0)})
	h := hostOf(t, Config{Instances: 1})
	c := chainOf(t, h, Step{Name: "liar", Module: loadOf(t, h, m.bytes())})
	for range 2 {
		b := batchOf("a", "b", "c")
		process(t, c, b)
		if n := b.Counts(); n.Rejected != 3 || !strings.Contains(b.Errors[2].Detail, "NOT_WRITTEN") {
			t.Errorf("%+v %v", n, b.Errors)
		}
	}
}

// Case F64: a module cut at any byte is refused by name.
func TestF64ModulesCutAtEachByte(t *testing.T) {
	wasm := scripted(false).bytes()
	h := hostOf(t, Config{Instances: 1})
	for n := range wasm {
		r, err := h.Admit(t.Context(), wasm[:n])
		if err != nil || r.OK() || !strings.HasPrefix(r.Failed(), "E_") {
			t.Errorf("%d of %d bytes: %v %s", n, len(wasm), err, r.Failed())
		}
	}
}

// TestWriteHostileModules leaves them in the folder HEADGATE_WRITE_HOSTILE with a list, for tests of the real binary.
func TestWriteHostileModules(t *testing.T) {
	dir := os.Getenv("HEADGATE_WRITE_HOSTILE")
	if dir == "" {
		t.Skip("writes files: run make test-hostile")
	}
	all := attacks()
	for i, a := range all {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)+".wasm"), a.wasm(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "attacks.json"), list, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
