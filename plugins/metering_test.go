package plugins

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/abi"
)

// Instructions that the scripted guest does not use.
const (
	i32Sub  = "\x6b"
	fillAll = "\xfc\x0b\x00"
	copyAll = "\xfc\x0a\x00\x00"
)

// hostile is a guest whose process does with its first event what code says, when the event starts with a !, and
// keeps any other. Functions from fnMore on are more.
func hostile(code string, more ...wasmFunction) wasmModule {
	m := scripted(false)
	process := &m.functions[fnProcess-fnVersion]
	process.code = strings.Replace(process.code, set(lcmd), set(lcmd)+get(lcmd)+i32('!')+eq+if_+code+end, 1)
	m.functions = append(m.functions, more...)
	return m
}

const fnMore = fnInit + 1

var endless = loop + branch(0) + end

// stopped are ways not to come back, with the kind of failure that they end in.
func stopped() map[string]struct {
	wasm wasmModule
	kind string
} {
	type way = struct {
		wasm wasmModule
		kind string
	}
	var tree []wasmFunction // each calls the next one twice: 2^40 calls without a loop, none of them again
	for i := range 40 {
		code := call(fnMore+i+1) + call(fnMore+i+1)
		tree = append(tree, wasmFunction{":", 0, code})
	}
	tree = append(tree, wasmFunction{":", 0, ""})
	fib := wasmFunction{"i:i", 0, get(0) + i32(2) + "\x48" /* lt_s */ + if_ + get(0) + ret + end +
		get(0) + i32(1) + i32Sub + call(fnMore) + get(0) + i32(2) + i32Sub + call(fnMore) + add}
	fill := func(n int32) string { return i32(0) + i32(1) + i32(n) + fillAll }
	deep := wasmFunction{"i:i", 2000 - 1, get(0) + call(fnMore)}
	return map[string]way{
		"a loop":                     {hostile(endless), "DEADLINE"},
		"a loop with a body":         {hostile(loop + get(li) + i32(1) + add + set(li) + get(li) + drop + branch(0) + end), "DEADLINE"},
		"loops in loops":             {hostile(loop + block + loop + branchIfNever + branch(2) + end + end + end), "DEADLINE"},
		"calls that double":          {hostile(call(fnMore), tree...), "DEADLINE"},
		"fibonacci":                  {hostile(i32(60)+call(fnMore)+drop, fib), "DEADLINE"},
		"recursion":                  {hostile(call(fnDeep)), "STACK"},
		"recursion with many locals": {hostile(i32(1)+call(fnMore)+drop, deep), "STACK"},
		"filling in a loop":          {hostile(loop + fill(64<<10) + branch(0) + end), "DEADLINE"},
		"copying in a loop":          {hostile(loop + i32(8) + i32(0) + i32(64<<10) + copyAll + branch(0) + end), "DEADLINE"},
		"growing by nothing":         {hostile(loop + i32(0) + memoryGrow + drop + branch(0) + end), "DEADLINE"},
		"growing by everything":      {hostile(loop + i32(-1) + memoryGrow + drop + branch(0) + end), "DEADLINE"},
		"calling the host":           {hostile(loop + i32(0) + get(lptr) + get(llen) + call(fnLog) + branch(0) + end), "DEADLINE"},
		// Each round costs as much as all of what stands in it, though none of it is executed.
		"a loop that costs much": {hostile(loop + i32(1) + branchIf(0) + strings.Repeat(get(0)+drop, 30_000) + end), "FUEL"},
	}
}

const branchIfNever = "\x41\x00\x0d\x00"

// A call that the request has no time for is no failure of the event: the batch is given up, and can be sent again.
func TestL05RequestEndsBeforeTheDeadline(t *testing.T) {
	h := hostOf(t, Config{Instances: 1, Deadline: hardDeadline})
	c := chainOf(t, h, Step{Name: "hostile", Module: loadOf(t, h, hostile(endless).bytes())})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	var p *event.Problem
	if err := c.Process(ctx, batchOf("ka", "!")); !errors.As(err, &p) || p.Code != event.Overloaded {
		t.Errorf("error %v", err)
	}
	b := batchOf("kb")
	process(t, c, b)
	if got := outcomes(b); got != "accepted key=b\n" {
		t.Error(got)
	}
}

// Case L19: what a guest does while it is set up has its limit, too.
func TestL19SlowStart(t *testing.T) {
	slow := withFunction(base(), fnDeep, wasmFunction{":", 0, endless})
	for name, m := range map[string]wasmModule{
		"start":       started(slow),
		"_initialize": exporting(slow, wasmExport{abi.ExportInitialize, kindFunction, fnDeep}),
		"hg_abi_v1":   withFunction(base(), fnVersion, wasmFunction{":i", 0, endless + i32(1)}),
		"hg_alloc":    withFunction(base(), fnAlloc, wasmFunction{"ii:i", 0, endless + i32(0)}),
	} {
		h := hostOf(t, Config{})
		h.cfg.InitTime = 20 * time.Millisecond
		r, err := h.Admit(context.Background(), m.bytes())
		if err != nil || !strings.HasPrefix(r.Failed(), "E_INIT") || !strings.Contains(r.Failed(), "it took too long") {
			t.Errorf("%s: %v %s", name, err, r.Failed())
		}
	}
	h := hostOf(t, Config{})
	h.cfg.InitTime = 20 * time.Millisecond
	m := loadOf(t, h, withFunction(base(), fnInit, wasmFunction{"ii:i", 0, endless + i32(0)}).bytes())
	if _, err := h.NewChain(context.Background(), []Step{{Name: "slow", Module: m}}, Rules{}); err == nil || !strings.Contains(err.Error(), "it took too long") {
		t.Errorf("hg_init: %v", err)
	}
}

// started is m with fnDeep as its start function.
func started(m wasmModule) wasmModule {
	m.start = leb(fnDeep)
	return m
}
