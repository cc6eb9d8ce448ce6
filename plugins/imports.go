package plugins

import (
	"context"
	"strconv"
	"unicode/utf8"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/headgate-io/headgate/plugins/meter"
	"github.com/headgate-io/headgate/sdk/abi"
)

// hostFunction is what a guest can import. Its call gets the guest, the guest's memory, and the parameters in
// stack; a result goes to stack[0].
type hostFunction struct {
	params string // a letter each: i for i32, I for i64
	result string // "i", "I" or none
	call   func(g *guest, mem api.Memory, stack []uint64)
}

// ownFunctions are the functions of abi.ImportModule; read only.
var ownFunctions = map[string]hostFunction{
	abi.ImportLog:     {"iii", "", hostLog},
	abi.ImportCounter: {"iI", "", hostCounter},
}

func hostFunctions(module string) map[string]hostFunction {
	switch module {
	case abi.ImportModule:
		return ownFunctions
	case abi.WASIModule:
		return wasiFunctions
	}
	return nil
}

func (f hostFunction) signature() string {
	return meter.Signature(letterNames(f.params), letterNames(f.result))
}

func letterNames(letters string) (names []string) {
	for _, c := range letters {
		names = append(names, map[rune]string{'i': "i32", 'I': "i64"}[c])
	}
	return names
}

func letterTypes(letters string) (types []api.ValueType) {
	for _, c := range letters {
		types = append(types, map[rune]api.ValueType{'i': api.ValueTypeI32, 'I': api.ValueTypeI64}[c])
	}
	return types
}

// provide instantiates in rt what the metered module imports, and no more: host functions are compiled as well.
func provide(ctx context.Context, rt wazero.Runtime, imports []meter.Import) error {
	own := rt.NewHostModuleBuilder(meter.YieldModule)
	yieldFunction.export(own, meter.YieldName)
	builders := map[string]wazero.HostModuleBuilder{meter.YieldModule: own}
	for _, in := range imports {
		b := builders[in.Module]
		if b == nil {
			b = rt.NewHostModuleBuilder(in.Module)
			builders[in.Module] = b
		}
		hostFunctions(in.Module)[in.Name].export(b, in.Name)
	}
	for _, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (f hostFunction) export(b wazero.HostModuleBuilder, name string) {
	b.NewFunctionBuilder().WithGoModuleFunction(f.bind(), letterTypes(f.params), letterTypes(f.result)).Export(name)
}

func (f hostFunction) bind() api.GoModuleFunc {
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		g := guestOf(ctx)
		f.call(g, mod.Memory(), stack)
		g.check() // a call of the host takes longer than the fuel for it
	}
}

func hostLog(g *guest, mem api.Memory, stack []uint64) {
	text, ok := mem.Read(api.DecodeU32(stack[1]), api.DecodeU32(stack[2]))
	if !ok {
		text = []byte("(a log line outside of the guest's memory)")
	}
	g.line(levelOf(api.DecodeU32(stack[0])), text)
}

func hostCounter(g *guest, _ api.Memory, stack []uint64) {
	if id := api.DecodeU32(stack[0]); id < abi.MaxCounters {
		g.bill.counters[id].Add(int64(stack[1]))
	}
}

// printable is text as it may stand in a log line: no more than abi.MaxLogLine as it is written, where some bytes take two, and
// with a replacement for all that would take more.
func printable(text []byte) string {
	line, written := make([]byte, 0, min(len(text), abi.MaxLogLine)), 0
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		switch {
		case r == '"' || r == '\\' || r == '\n' || r == '\t':
			written++
		case !strconv.IsPrint(r):
			r = utf8.RuneError
		}
		if written += utf8.RuneLen(r); written > abi.MaxLogLine {
			return string(line)
		}
		line = utf8.AppendRune(line, r)
	}
	return string(line)
}
