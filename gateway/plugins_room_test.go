package gateway

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/gateway/datafolder"
	"github.com/headgate-io/headgate/plugins/meter"
)

// another is the scripted module with so many bytes that do not compress in a custom section of its own.
func another(t *testing.T, seed uint64, size int) []byte {
	t.Helper()
	noise := make([]byte, size)
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	wasm, err := meter.WithCustom(scriptedModule(t), "noise", noise)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func (in *instance) upload(name string, wasm []byte) admin.Version {
	in.t.Helper()
	v, _, err := in.Upload(in.t.Context(), name, wasm, nil)
	if err != nil {
		in.t.Fatal(err)
	}
	return v
}

// L15: an upload too many is refused with the figures and what would make room, before anything is compiled; what is there
// may be uploaded again, and room that is made can be used.
func TestL15AnUploadThatDoesNotFit(t *testing.T) {
	cfg := zero(t)
	cfg.Plugins.MaxModules = 3
	in := start(t, cfg)
	defer in.end()
	var versions []admin.Version
	for i := range 3 {
		versions = append(versions, in.upload(fmt.Sprintf("p%d", i), another(t, uint64(i), 1000)))
	}
	if _, err := in.Activate(t.Context(), "web", admin.Activation{Plugin: "p0"}); err != nil {
		t.Fatal(err)
	}
	wasm := another(t, 9, 1000)
	v := in.upload("p9", wasm)
	if len(v.Checks) != 1 || v.Checks[0].Check != "room" || v.Checks[0].Code != "E_LIMIT" {
		t.Fatalf("%+v", v)
	}
	detail := v.Checks[0].Detail
	for _, part := range []string{"3 modules of ", fmt.Sprintf("%d bytes are stored", 3*len(wasm)), fmt.Sprintf("this one has %d bytes", len(wasm)),
		"headgate plugin delete p1 --digest " + versions[1].Digest[7:19] + "; headgate plugin delete p2", "plugins.max_modules, which is 3"} {
		if !strings.Contains(detail, part) {
			t.Errorf("%s lacks %s", detail, part)
		}
	}
	if strings.Contains(detail, "delete p0") {
		t.Errorf("names what is in use: %s", detail)
	}
	if v := in.upload("p5", another(t, 1, 1000)); len(v.Checks) < 5 || v.Digest != versions[1].Digest {
		t.Errorf("%+v", v)
	}
	for _, name := range []string{"p1", "p5"} {
		if err := in.DeletePlugin(t.Context(), name, ""); err != nil {
			t.Fatal(err)
		}
	}
	if v := in.upload("p9", wasm); len(v.Checks) < 5 {
		t.Errorf("%+v", v)
	}
}

// L21: what is deleted leaves nothing: not in the control store, its copy, the cache of compiled modules, nor the logs.
func TestL21DeletedPluginsLeaveNothing(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	dir := in.cfg.Data
	before, err := datafolder.BytesIn(filepath.Join(dir, "control"))
	if err != nil {
		t.Fatal(err)
	}
	const modules, size = 4, 6 << 20
	const block = 9 << 20 // the store keeps the file that it writes to, of 8 MiB, as it is
	for i := range modules {
		in.upload("big", another(t, uint64(i), size))
		if _, err := in.Activate(t.Context(), "web", admin.Activation{Plugin: "big"}); err != nil {
			t.Fatal(err)
		}
	}
	full, err := datafolder.BytesIn(filepath.Join(dir, "control"))
	if err != nil || full-before < modules*size {
		t.Fatalf("%d bytes, then %d: %v", before, full, err)
	}
	if _, err := in.Deactivate(t.Context(), "web", "big"); err != nil {
		t.Fatal(err)
	}
	if err := in.DeletePlugin(t.Context(), "big", ""); err != nil {
		t.Fatal(err)
	}
	// The store gives space back a moment later.
	deadline := time.Now().Add(2 * time.Minute)
	after := full
	for after-before > block && time.Now().Before(deadline) {
		<-time.After(50 * time.Millisecond)
		if after, err = datafolder.BytesIn(filepath.Join(dir, "control")); err != nil {
			t.Fatal(err)
		}
	}
	if after-before > block {
		t.Errorf("control store: %d bytes, with the modules %d, without them %d", before, full, after)
	}
	for _, pattern := range []string{"plugin-cache/*", "state/modules/*", "state/plugins/*"} {
		if left, _ := filepath.Glob(filepath.Join(dir, pattern)); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	var logs bytes.Buffer
	err = in.PluginLogs(t.Context(), admin.LogQuery{Plugin: "big"}, func(lines []admin.LogLine) error {
		fmt.Fprintln(&logs, lines)
		return nil
	})
	if err == nil {
		t.Errorf("logs: %s", &logs)
	}
}
