package meter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// outcome is what a run of a generated module left behind.
type outcome struct {
	result, left uint64
	err          string
	memory       string
}

// runtimeOf is a runtime with what generated modules import.
func runtimeOf(t testing.TB, yields *int) wazero.Runtime {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithMemoryLimitPages(100))
	t.Cleanup(func() { rt.Close(ctx) })
	h := rt.NewHostModuleBuilder("h")
	one := []api.ValueType{api.ValueTypeI32}
	for i, name := range []string{"a", "b"} {
		h.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) {
			stack[0] = uint64(uint32(stack[0])*3 + uint32(i))
		}), one, one).Export(name)
	}
	if _, err := h.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	long := []api.ValueType{api.ValueTypeI64}
	y := rt.NewHostModuleBuilder(YieldModule)
	y.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) {
		if int64(stack[0]) == Deep {
			panic(errDeep)
		}
		if *yields++; *yields > 1000 {
			panic(errSpent)
		}
		stack[0] = Slice
	}), long, long).Export(YieldName)
	if _, err := y.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	return rt
}

var errDeep, errSpent = errors.New("deep"), errors.New("spent")

// compiled is a generated module.
type compiled struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	yields  *int
}

func compile(t testing.TB, wasm []byte) (c compiled) {
	t.Helper()
	c.yields = new(int)
	c.runtime = runtimeOf(t, c.yields)
	var err error
	if c.module, err = c.runtime.CompileModule(context.Background(), wasm); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c compiled) run(t testing.TB, param, steps uint64) (o outcome) {
	t.Helper()
	ctx := context.Background()
	*c.yields = 0
	mod, err := c.runtime.InstantiateModule(ctx, c.module, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	defer mod.Close(ctx)
	mod.ExportedGlobal("left").(api.MutableGlobal).Set(steps)
	stack := []uint64{param}
	if err := mod.ExportedFunction("run").CallWithStack(ctx, stack); err != nil {
		o.err, _, _ = strings.Cut(err.Error(), "\n")
	}
	p, _ := mod.Memory().Read(0, mod.Memory().Size())
	o.result, o.left, o.memory = stack[0], mod.ExportedGlobal("left").Get(), string(p)
	return o
}

// A metered module does what it did before.
func TestGeneratedModulesDoTheSame(t *testing.T) {
	const seeds = 150
	ended, returned, grown := 0, 0, 0
	for seed := range uint64(seeds) {
		wasm := generate(seed)
		metered, err := Rewrite(wasm)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if c, err := TakeCensus(wasm); err != nil || len(c.Faults()) > 0 {
			t.Fatalf("seed %d: %v %v", seed, err, c.Faults())
		}
		before, after := compile(t, wasm), compile(t, metered)
		for _, steps := range []uint64{0, 3, 500} {
			if plain, same := before.run(t, seed, steps), after.run(t, seed, steps); plain != same {
				t.Fatalf("seed %d, %d steps: result %d %d, left %d %d, error %q %q, same memory: %t", seed, steps,
					plain.result, same.result, plain.left, same.left, plain.err, same.err, plain.memory == same.memory)
			} else if plain.err == "" {
				returned++
			} else if len(plain.memory) > 1<<16 {
				grown++
			}
			ended++
		}
	}
	t.Logf("%d runs: %d returned, %d grew their memory", ended, returned, grown)
	if returned < ended/4 || returned == ended || grown == 0 {
		t.Errorf("%d runs: %d returned, %d grew their memory", ended, returned, grown)
	}
}

// Real modules, as far as they are in the repository.
func committed(t testing.TB) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, pattern := range []string{"../testdata/*.wasm", "../../examples/plugins/*/*.wasm", "../../sdk/*/*.wasm"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if all[name], err = os.ReadFile(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(all) < 2 {
		t.Fatalf("%d modules in the repository", len(all))
	}
	return all
}

func TestModulesCutAtEachByte(t *testing.T) {
	for seed := range uint64(3) {
		wasm := generate(seed)
		refused := 0
		for n := range wasm {
			if _, err := Rewrite(wasm[:n]); err != nil {
				refused++
			}
		}
		if refused < len(wasm)-20 { // a module may end between two sections
			t.Errorf("%d of %d are refused", refused, len(wasm))
		}
	}
}

// FuzzRewrite: nothing makes Rewrite panic, and a valid module stays valid.
func FuzzRewrite(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(generate(seed))
	}
	for name, wasm := range committed(f) {
		if len(wasm) < 20<<10 {
			f.Log(name)
			f.Add(wasm)
		}
	}
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithMemoryLimitPages(100))
	f.Cleanup(func() { rt.Close(ctx) })
	f.Fuzz(func(t *testing.T, wasm []byte) {
		if len(wasm) > 64<<10 {
			return
		}
		c, err := TakeCensus(wasm)
		if err != nil || len(c.Faults()) > 0 {
			return
		}
		ReadLayout(wasm)
		metered, err := Rewrite(wasm)
		if err != nil && bigNumber(wasm) {
			return // the compiler makes room for as much as a count says, before it looks
		}
		before, plainErr := compiles(rt, wasm)
		if err != nil {
			if before && !strings.HasPrefix(err.Error(), "section 12") { // the compiler takes a broken one
				t.Fatalf("valid, and refused: %v", err)
			}
			return
		}
		if after, err := compiles(rt, metered); before && !after {
			t.Fatalf("valid, and then invalid: %v", err)
		} else if after && !before && !strings.Contains(fmt.Sprint(plainErr), "custom") {
			t.Fatalf("invalid, and then valid: %v", plainErr)
		}
	})
}

// bigNumber reports whether there may be a number above 2^21.
func bigNumber(wasm []byte) bool {
	for i := range len(wasm) - 2 {
		if wasm[i]&wasm[i+1]&wasm[i+2] >= 0x80 {
			return true
		}
	}
	return false
}

func compiles(rt wazero.Runtime, wasm []byte) (ok bool, err error) {
	defer func() {
		if p := recover(); p != nil { // its validation panics on some
			ok, err = false, fmt.Errorf("%v", p)
		}
	}()
	m, err := rt.CompileModule(context.Background(), wasm)
	if err == nil {
		err = m.Close(context.Background())
	}
	return err == nil, err
}

// FuzzSameResults: modules of any seed do the same metered.
func FuzzSameResults(f *testing.F) {
	f.Add(uint64(1_000_000), uint16(100))
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) {
		wasm := generate(seed)
		metered, err := Rewrite(wasm)
		if err != nil {
			t.Fatal(err)
		}
		before, after := compile(t, wasm), compile(t, metered)
		if plain, same := before.run(t, seed, uint64(steps)), after.run(t, seed, uint64(steps)); plain != same {
			t.Errorf("result %d %d, left %d %d, error %q %q", plain.result, same.result, plain.left, same.left, plain.err, same.err)
		}
	})
}
