package plugins

import (
	"strings"

	"github.com/headgate-io/headgate/sdk/abi"
)

// Functions of the test guests, in the order of their indices: two imports come first.
const (
	fnExit = iota // wasi proc_exit
	fnLog         // hg.log
	fnVersion
	fnAlloc
	fnProcess
	fnDeep // calls itself for ever
	fnInit
)

// Locals of fnProcess: the control block, then these.
const (
	lctl = iota
	li
	ln
	lev  // address of the descriptor
	lres // address of the result
	lptr // address of the event
	llen
	lcmd // its first byte
)

// scripted is a guest that does with an event what its first byte says: see commands. It stores done before each
// event, unless silent.
func scripted(silent bool) wasmModule {
	m := base()
	done := get(lctl) + get(li) + store(abi.CtlDone)
	if silent {
		done = ""
	}
	var code strings.Builder
	code.WriteString(get(lctl) + load(abi.CtlFirst) + set(li) + get(lctl) + load(abi.CtlCount) + set(ln))
	code.WriteString(block + loop + get(li) + get(ln) + geU + branchIf(1) + done)
	code.WriteString(get(lctl) + load(abi.CtlEvents) + get(li) + i32(abi.EventSize) + mul + add + set(lev))
	code.WriteString(get(lctl) + load(abi.CtlResults) + get(li) + i32(abi.ResultSize) + mul + add + set(lres))
	code.WriteString(get(lctl) + load(abi.CtlData) + get(lev) + load(abi.EventOffset) + add + set(lptr))
	code.WriteString(get(lev) + load(abi.EventLength) + set(llen) + get(lptr) + load8(0) + set(lcmd))
	for _, c := range commands {
		code.WriteString(get(lcmd) + i32(int32(c.first)) + eq + if_ + c.code + end)
	}
	code.WriteString(get(li) + i32(1) + add + set(li) + branch(0) + end + end)
	code.WriteString(get(lctl) + get(ln) + store(abi.CtlDone) + i32(0))
	m.functions[fnProcess-fnVersion] = wasmFunction{"i:i", 7, code.String()}
	return m
}

func outcome(key, keyLen, verdict, code, value, valueLen string) string {
	return get(lres) + key + store(abi.ResKey) + get(lres) + keyLen + store16(abi.ResKeyLen) +
		get(lres) + verdict + store8(abi.ResVerdict) + get(lres) + code + store8(abi.ResCode) +
		get(lres) + value + store(abi.ResValue) + get(lres) + valueLen + store(abi.ResValueLen)
}

func keep(key, keyLen string) string {
	return outcome(key, keyLen, i32(abi.VerdictKeep), i32(0), i32(0), i32(0))
}

func replace(value, valueLen string) string {
	return outcome(i32(0), i32(0), i32(abi.VerdictReplace), i32(0), value, valueLen)
}

// commands of the scripted guest. "Rest" is the event without its first byte.
var commands = []struct {
	first byte
	code  string
}{
	{'k', keep(get(lptr)+i32(1)+add, get(llen)+i32(-1)+add)},          // key: the rest
	{'c', get(lptr) + i32('K') + store8(1) + keep(get(lptr), i32(2))}, // key: the first two bytes, the second changed to K
	{'e', keep(get(lptr), i32(0))},                                    // the empty key
	{'0', keep(i32(0), i32(0))},                                       // no key
	{'d', outcome(i32(0), i32(0), i32(abi.VerdictDrop), i32(0), i32(0), i32(0))},
	{'r', outcome(i32(0), i32(0), i32(abi.VerdictReject), i32(7), i32(0), i32(0))},
	{'v', replace(get(lptr)+i32(1)+add, get(llen)+i32(-1)+add)},    // replaced by the rest
	{'V', replace(i32(0), i32(1<<20))},                             // replaced by 1 MiB of memory
	{'B', keep(i32(-16), i32(0xFFFF))},                             // key: ends behind 4 GiB
	{'b', keep(memorySize+i32(pageSize)+mul+i32(-4)+add, i32(5))},  // key: one byte behind the end of memory
	{'q', replace(i32(-1), i32(-1))},                               // value: 4 GiB at the end of 4 GiB
	{'L', keep(get(lptr), i32(abi.MaxKey+1))},                      // key: too long
	{'?', outcome(i32(0), i32(0), i32(9), i32(0), i32(0), i32(0))}, // a verdict that does not exist
	{'n', ""},                    // nothing written
	{'t', unreachable},           // trap
	{'x', i32(3) + call(fnExit)}, // exit
	{'s', call(fnDeep)},          // recursion
	{'m', loop + i32(1) + memoryGrow + i32(-1) + eq + if_ + unreachable + end + branch(0) + end}, // all memory there is
	{'g', i32(1) + memoryGrow + i32(-1) + eq + if_ + unreachable + end + keep(i32(0), i32(0))},   // a page that is never given back
	{'l', i32(abi.LevelInfo) + get(lptr) + get(llen) + call(fnLog) + keep(i32(0), i32(0))},       // a log line
	{'f', i32(-1) + ret},          // the whole batch fails
	{'w', loop + branch(0) + end}, // works until it is stopped
}

// base is a guest with all that is required; its process does nothing.
func base() wasmModule {
	m := wasmModule{
		imports: []wasmImport{
			{abi.WASIModule, "proc_exit", kindFunction, "i:"},
			{abi.ImportModule, abi.ImportLog, kindFunction, "iii:"},
		},
		functions: []wasmFunction{
			{":i", 0, i32(abi.SetsKeys | abi.Drops | abi.Replaces)},
			{"ii:i", 2, bump},
			{"i:i", 0, i32(0)},
			{":", 0, call(fnDeep)},
			{"ii:i", 0, initialise},
		},
		memories: []string{"\x00\x02"}, // two pages, growing
	}
	m.exports = []wasmExport{
		{abi.ExportVersion, kindFunction, fnVersion}, {abi.ExportAlloc, kindFunction, fnAlloc},
		{abi.ExportProcess, kindFunction, fnProcess}, {abi.ExportInit, kindFunction, fnInit},
		{abi.ExportMemory, kindMemory, 0},
	}
	return m
}

// bump allocates whole pages behind the memory's end: parameters size and align, locals 2 and 3.
var bump = memorySize + i32(pageSize) + mul + set(2) +
	get(0) + i32(pageSize-1) + add + "\x41" + sleb(16) + "\x76" /* shr_u */ + memoryGrow + i32(-1) + eq + if_ + i32(0) + ret + end +
	get(2)

// initialise refuses a configuration that starts with an x, after logging it.
var initialise = get(1) + if_ + get(0) + load8(0) + i32('x') + eq + if_ +
	i32(abi.LevelError) + get(0) + get(1) + call(fnLog) + i32(5) + ret + end + end + i32(0)

// idle is a guest that keeps every event without a key.
func idle() wasmModule {
	m := base()
	m.functions[fnProcess-fnVersion] = wasmFunction{"i:i", 3, get(0) + load(abi.CtlCount) + i32(abi.ResultSize) + mul + get(0) + load(abi.CtlResults) + set(1) +
		get(1) + add + set(2) +
		loop + get(1) + "\x42\x00" + "\x37\x03\x00" + get(1) + i32(abi.ResultSize) + add + set(1) + get(1) + get(2) + "\x49" /* lt_u */ + branchIf(0) + end + i32(0)}
	return m
}
