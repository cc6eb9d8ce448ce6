package control_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/control"
)

var created = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// module returns n bytes that don't compress and differ by seed.
func module(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func add(t *testing.T, store *control.Store, name string, module []byte) control.Version {
	t.Helper()
	v, added, err := store.Plugins.Add(t.Context(), name, module, control.Version{Created: created, Report: json.RawMessage(`{"abi":1}`)})
	if err != nil || !added {
		t.Fatalf("add: %v, %v", added, err)
	}
	return v
}

func TestPluginsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	store, server := open(t, dir)
	one, two := module(1, 300_000), module(2, 3<<20)
	v1 := add(t, store, "accesslog", one)
	v2 := add(t, store, "accesslog", two)
	if want := fmt.Sprintf("sha256:%x", sha256.Sum256(one)); v1.Digest != want || v1.Size != len(one) {
		t.Errorf("version %+v", v1)
	}
	server.Close()

	store, _ = open(t, dir)
	plugin, err := store.Plugins.Read(t.Context(), "accesslog")
	if err != nil || plugin.Name != "accesslog" || len(plugin.Versions) != 2 || plugin.Versions[1].Digest != v2.Digest {
		t.Fatalf("plugin %+v, %v", plugin, err)
	}
	if v := plugin.Versions[0]; !v.Created.Equal(created) || string(v.Report) != `{"abi":1}` || v.Size != len(one) {
		t.Errorf("version %+v", v)
	}
	for digest, want := range map[string][]byte{v1.Digest: one, v2.Digest: two} {
		if got, err := store.Plugins.Module(t.Context(), digest); err != nil || !bytes.Equal(got, want) {
			t.Errorf("module %s: %d bytes, %v", digest, len(got), err)
		}
	}
}

func TestSameModuleIsAddedOnce(t *testing.T) {
	store, _ := open(t, t.TempDir())
	v := add(t, store, "a", module(1, 1000))
	add(t, store, "a", module(2, 1000))
	again, added, err := store.Plugins.Add(t.Context(), "a", module(1, 1000), control.Version{Created: created.Add(time.Hour)})
	if err != nil || added || again.Digest != v.Digest || !again.Created.Equal(created) {
		t.Errorf("%+v, %v, %v", again, added, err)
	}
	if p, err := store.Plugins.Read(t.Context(), "a"); err != nil || len(p.Versions) != 2 || p.Versions[1].Digest != v.Digest {
		t.Errorf("what was uploaded last is not the newest: %+v, %v", p, err)
	}
	var all sync.WaitGroup
	for i := range uint64(8) {
		all.Go(func() {
			if _, _, err := store.Plugins.Add(t.Context(), "b", module(i%4, 1000), control.Version{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	plugins, err := store.Plugins.List(t.Context())
	if err != nil || len(plugins) != 2 || len(plugins[0].Versions) != 2 || len(plugins[1].Versions) != 4 {
		t.Errorf("%+v, %v", plugins, err)
	}
}

func TestRemoveKeepsModulesOfOthers(t *testing.T) {
	store, _ := open(t, t.TempDir())
	shared, own := add(t, store, "a", module(1, 1000)), add(t, store, "a", module(2, 1000))
	add(t, store, "b", module(1, 1000))
	if err := store.Plugins.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := store.Plugins.Remove(t.Context(), "a"); !errors.Is(err, control.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if _, err := store.Plugins.Module(t.Context(), own.Digest); !errors.Is(err, control.ErrNotFound) {
		t.Errorf("module nobody has: %v", err)
	}
	if _, err := store.Plugins.Module(t.Context(), shared.Digest); err != nil {
		t.Errorf("shared module: %v", err)
	}
	add(t, store, "a", module(2, 1000))
	if _, err := store.Plugins.Module(t.Context(), own.Digest); err != nil {
		t.Errorf("module added again: %v", err)
	}
}

func TestModuleIsCheckedAgainstItsDigest(t *testing.T) {
	store, server := open(t, t.TempDir())
	v := add(t, store, "a", module(1, 1000))
	nc, err := server.Connect("damage")
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := js.ObjectStore(t.Context(), "headgate_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := objects.PutBytes(t.Context(), v.Digest, module(2, 1000)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Plugins.Module(t.Context(), v.Digest); err == nil || errors.Is(err, control.ErrNotFound) {
		t.Errorf("damaged module: %v", err)
	}
	// Uploading it again mends it.
	if _, added, err := store.Plugins.Add(t.Context(), "a", module(1, 1000), control.Version{}); added || err != nil {
		t.Errorf("%v, %v", added, err)
	}
	if got, err := store.Plugins.Module(t.Context(), v.Digest); err != nil || !bytes.Equal(got, module(1, 1000)) {
		t.Errorf("mended module: %d bytes, %v", len(got), err)
	}
}

func TestPluginsAreBounded(t *testing.T) {
	store, _ := open(t, t.TempDir())
	if _, _, err := store.Plugins.Add(t.Context(), "a", make([]byte, control.MaxModule+1), control.Version{}); !errors.Is(err, control.ErrTooLarge) {
		t.Errorf("module a byte too large: %v", err)
	}
	if _, _, err := store.Plugins.Add(t.Context(), "../a", nil, control.Version{}); !errors.Is(err, control.ErrName) {
		t.Errorf("bad name: %v", err)
	}
	if _, err := store.Plugins.Read(t.Context(), "a"); !errors.Is(err, control.ErrNotFound) {
		t.Errorf("read nothing: %v", err)
	}
	largest := module(3, control.MaxModule)
	v := add(t, store, "a", largest)
	if got, err := store.Plugins.Module(t.Context(), v.Digest); err != nil || !bytes.Equal(got, largest) {
		t.Errorf("largest module: %d bytes, %v", len(got), err)
	}
}

// A signature that comes later is taken over; none leaves the one that is there.
func TestASignatureIsTakenOver(t *testing.T) {
	store, _ := open(t, t.TempDir())
	add(t, store, "p", module(1, 100))
	add(t, store, "p", module(2, 100))
	for _, c := range []struct{ given, want string }{{"", ""}, {"one", "one"}, {"", "one"}, {"two", "two"}} {
		v, added, err := store.Plugins.Add(t.Context(), "p", module(1, 100), control.Version{Created: created.Add(time.Hour), Report: json.RawMessage(`{"abi":2}`), Signature: []byte(c.given)})
		if err != nil || added || string(v.Signature) != c.want || !v.Created.Equal(created) {
			t.Errorf("%q: %+v, added %v, %v", c.given, v, added, err)
		}
	}
	p, err := store.Plugins.Read(t.Context(), "p")
	if err != nil || len(p.Versions) != 2 || string(p.Versions[1].Signature) != "two" || string(p.Versions[1].Report) != `{"abi":2}` || p.Versions[0].Signature != nil {
		t.Errorf("%+v, %v", p, err)
	}
}
