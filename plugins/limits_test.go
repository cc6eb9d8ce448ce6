package plugins

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/plugins/meter"
)

// rawModule is a module of sections as they are.
func rawModule(sections ...string) []byte { return []byte(moduleHeader + strings.Join(sections, "")) }

// manyLocals is a whole plugin of 128 bytes whose one function has 2^32-1 locals.
const manyLocals = "0061736d010000000113046000017f60027f7f017f60017f017f60000003040300010205030100100607017f014180080b" +
	"072e040968675f6162695f763100000868675f616c6c6f6300010a68675f70726f636573730002066d656d6f727902000a2303040041070b1100" +
	"2300230020006a410f6a41707124000b0a01ffffffff0f7f41000b"

// body is a function body with groups of so many locals each.
func body(code string, groups ...int) string {
	var locals []string
	for _, n := range groups {
		locals = append(locals, leb(n)+"\x7f")
	}
	b := vector(locals) + code + end
	return leb(len(b)) + b
}

// Case L01: what makes a compiler take minutes or all memory is refused before it sees it.
func TestL01Limits(t *testing.T) {
	locals, err := hex.DecodeString(manyLocals)
	if err != nil {
		t.Fatal(err)
	}
	most := func(n int, item string) string { return vector(slices.Repeat([]string{item}, n)) }
	tests := []struct {
		name     string
		over, at []byte // one more than the limit, and at the limit
		detail   string
	}{
		{"locals of a plugin", locals, nil, "locals of function body 2: 4294967295, more than the limit of 2000"},
		{"locals", rawModule(section(sectionCode, vector([]string{body("", 1000, 1000, 1)}))),
			rawModule(section(sectionCode, vector([]string{body("", 1000, 1000)}))), "locals of function body 0: 2001, more than the limit of 2000"},
		{"locals in all", rawModule(section(sectionCode, most(501, body("", 2000)))),
			rawModule(section(sectionCode, most(500, body("", 2000)))), "locals of all functions: 1002000, more than the limit of 1000000"},
		{"types", rawModule(section(sectionType, most(10_001, "\x60\x00\x00"))),
			rawModule(section(sectionType, most(10_000, "\x60\x00\x00"))), "types: 10001, more than the limit of 10000"},
		{"parameters", rawModule(section(sectionType, vector([]string{"\x60" + most(1001, "\x7f") + leb(0)}))),
			rawModule(section(sectionType, vector([]string{"\x60" + most(1000, "\x7f") + leb(0)}))), "parameters of type 0: 1001, more than the limit of 1000"},
		{"results", rawModule(section(sectionType, vector([]string{"\x60" + leb(0) + most(1001, "\x7f")}))),
			rawModule(section(sectionType, vector([]string{"\x60" + leb(0) + most(1000, "\x7f")}))), "results of type 0: 1001, more than the limit of 1000"},
		{"functions", rawModule(section(sectionFunction, most(20_001, "\x00"))),
			rawModule(section(sectionFunction, most(20_000, "\x00"))), "functions: 20001, more than the limit of 20000"},
		{"functions in two sections", rawModule(section(sectionFunction, most(20_000, "\x00")), section(sectionFunction, most(1, "\x00"))), nil,
			"functions: 20001"},
		{"body", rawModule(section(sectionCode, vector([]string{body(strings.Repeat("\x01", 128<<10-1))}))),
			rawModule(section(sectionCode, vector([]string{body(strings.Repeat("\x01", 128<<10-2))}))), "bytes of function body 0: 131073, more than the limit of 131072"},
		{"tables", rawModule(section(sectionTable, most(2, "\x70\x00\x01"))),
			rawModule(section(sectionTable, most(1, "\x70\x00\x01"))), "tables: 2, more than the limit of 1"},
		{"table", rawModule(section(sectionTable, vector([]string{"\x70\x00" + leb(100_001)}))),
			rawModule(section(sectionTable, vector([]string{"\x70\x00" + leb(100_000)}))), "elements a table starts with: 100001, more than the limit of 100000"},
		{"globals", rawModule(section(sectionGlobal, leb(10_001))), rawModule(section(sectionGlobal, leb(10_000))), "globals: 10001, more than the limit of 10000"},
		{"elements", rawModule(section(sectionElement, leb(10_001))), rawModule(section(sectionElement, leb(10_000))), "element segments: 10001"},
		{"imports and exports", rawModule(section(sectionImport, leb(500)), section(sectionExport, leb(501))),
			rawModule(section(sectionImport, leb(500)), section(sectionExport, leb(500))), "imports and exports: 1001, more than the limit of 1000"},
		{"data", rawModule(section(sectionData, strings.Repeat("\x00", 8<<20+1))),
			rawModule(section(sectionData, strings.Repeat("\x00", 8<<20))), "bytes of data: 8388609, more than the limit of 8388608"},
	}
	for _, tt := range tests {
		r := &Report{}
		hostOf(t, Config{MaxModule: 32 << 20}).inspect(tt.over, r)
		if !slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Code == codeLimit && strings.Contains(c.Detail, tt.detail) }) {
			t.Errorf("%s: %+v; want %s with %q", tt.name, r.Checks, codeLimit, tt.detail)
		}
		if tt.at == nil {
			continue
		}
		if c, err := meter.TakeCensus(tt.at); err != nil || len(c.Faults()) > 0 {
			t.Errorf("%s, at the limit: %v %v", tt.name, err, c.Faults())
		}
	}
}

func TestL01ManyLocalsAreRefusedByName(t *testing.T) {
	wasm, err := hex.DecodeString(manyLocals)
	if err != nil {
		t.Fatal(err)
	}
	if r := admit(t, wasm); !strings.HasPrefix(r.Failed(), "E_LIMIT locals of function body 2: 4294967295") {
		t.Errorf("%+v", r.Checks)
	}
}

func TestCensusCutAtEachByte(t *testing.T) {
	wasm := scripted(false).bytes()
	refused := 0
	for n := range wasm {
		if _, err := meter.TakeCensus(wasm[:n]); err != nil {
			refused++
		}
	}
	if c, err := meter.TakeCensus(wasm); err != nil || len(c.Faults()) > 0 || refused < len(wasm)-10 {
		t.Errorf("%+v %v, %d of %d cut ones refused", c, err, refused, len(wasm))
	}
}

// Guests of real compilers stay below the limits.
func TestRealGuestsAreWithinTheLimits(t *testing.T) {
	guest, err := buildGuest()
	if err != nil {
		t.Fatal(err)
	}
	for name, wasm := range map[string][]byte{"Go": example(t), "Go with encoding/json": guest, "C": exampleInC(t)} {
		c, err := meter.TakeCensus(wasm)
		if err != nil || len(c.Faults()) > 0 {
			t.Errorf("%s: %v %v", name, err, c.Faults())
		}
	}
}
