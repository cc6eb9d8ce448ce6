package plugins

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/headgate-io/headgate/sdk/abi"
)

// The tests of sdk/plugin run as WebAssembly, too: part of it is written for that alone.
func TestTestsOfTheGoSDKOnWebAssembly(t *testing.T) {
	ctx := t.Context()
	rt := wazero.NewRuntime(ctx)
	defer rt.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	ignore := api.GoFunc(func(context.Context, []uint64) {})
	own := rt.NewHostModuleBuilder(abi.ImportModule)
	for name, f := range ownFunctions {
		own.NewFunctionBuilder().WithGoFunction(ignore, letterTypes(f.params), letterTypes(f.result)).Export(name)
	}
	if _, err := own.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	_, err := rt.InstantiateWithConfig(ctx, testsOfTheGoSDK(t), wazero.NewModuleConfig().
		WithArgs("plugin.test", "-test.v", "-test.run=^Test").WithStdout(&out).WithStderr(&out).WithSysNanotime().WithSysWalltime())
	var exit *sys.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 0 {
		err = nil
	}
	if err != nil || !bytes.Contains(out.Bytes(), []byte("--- PASS: TestLookUpInAssembly")) {
		t.Errorf("%v\n%s", err, &out)
	}
}

func testsOfTheGoSDK(t *testing.T) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "plugin.test.wasm")
	cmd := exec.Command("go", "test", "-c", "-o", out, "../sdk/plugin")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}
