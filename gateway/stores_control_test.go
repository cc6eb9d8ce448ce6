package gateway

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/admin"
)

// harm damages a control store in one way.
var harms = map[string]func(t *testing.T, control string){
	"deleted": func(t *testing.T, control string) {
		if err := os.RemoveAll(control); err != nil {
			t.Fatal(err)
		}
	},
	"every file cut in half": func(t *testing.T, control string) {
		cut(t, control, "", func(size int64) int64 { return size / 2 })
	},
	"every file empty": func(t *testing.T, control string) { cut(t, control, "", func(int64) int64 { return 0 }) },
	"messages cut": func(t *testing.T, control string) {
		cut(t, control, ".blk", func(size int64) int64 { return size * 2 / 3 })
	},
	"a file in its place": func(t *testing.T, control string) {
		if err := os.RemoveAll(control); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(control, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	},
}

// cut shortens the files below dir whose names end so.
func cut(t *testing.T, dir, suffix string, to func(size int64) int64) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.HasSuffix(path, suffix) {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		found++
		return os.Truncate(path, to(info.Size()))
	})
	if err != nil || found == 0 {
		t.Fatalf("cut %d files: %v", found, err)
	}
}

func (in *instance) note() string {
	for _, d := range in.Dependencies() {
		if d.Name == "control" && d.OK {
			return d.Detail
		}
	}
	return "no such dependency, or it fails"
}

// writes calls a function at every write.
type writes func()

func (w writes) Write(p []byte) (int, error) { w(); return len(p), nil }

func TestF22ControlStoreLost(t *testing.T) {
	for name, harm := range harms {
		t.Run(name, func(t *testing.T) {
			cfg := zero(t)
			in := start(t, cfg)
			before, _, err := in.SetStream(t.Context(), "web", json.RawMessage(`{"key":{"json":"/k"},"partitions":8}`), admin.Match{})
			if err != nil {
				t.Fatal(err)
			}
			in.want(200, `"accepted":1`, "web", `{"k":"x"}`)
			if in.note() != "" {
				t.Errorf("note before: %q", in.note())
			}
			in.end()

			harm(t, filepath.Join(cfg.Data, "control"))
			in = start(t, cfg)
			if !strings.Contains(in.note(), "rebuilt from") {
				t.Errorf("note: %q", in.note())
			}
			after, err := in.Stream(t.Context(), "web")
			if err != nil || string(after.Document) != string(before.Document) || after.Revision <= before.Revision {
				t.Errorf("before %+v\nafter %+v, %v", before, after, err)
			}
			in.want(200, `"accepted":1`, "web", `{"k":"x"}`)
			rows := in.rows("web")
			if len(rows) != 2 || rows[0].Partition != rows[1].Partition || rows[0].Slot != rows[1].Slot || rows[1].Number != 2 {
				t.Errorf("the key moved, or its numbers do not go on: %+v", rows)
			}
			in.end()

			in = start(t, cfg)
			defer in.end()
			if in.note() != "" {
				t.Errorf("the second start does not take the new store as it is: %q", in.note())
			}
			if again, err := in.Stream(t.Context(), "web"); err != nil || again.Revision != after.Revision {
				t.Errorf("%+v, %v", again, err)
			}
		})
	}
}

func TestF22FilesLostStoreFine(t *testing.T) {
	cfg := zero(t)
	in := start(t, cfg)
	in.want(200, `"accepted":1`, "web", `{}`)
	in.end()
	state := filepath.Join(cfg.Data, "state")
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}
	in = start(t, cfg)
	defer in.end()
	if _, err := in.Stream(t.Context(), "web"); err != nil || in.note() != "" {
		t.Errorf("%v, note %q", err, in.note())
	}
	for _, file := range []string{"streams/web.json", "tables/web.json", "secrets/web.json"} {
		if _, err := os.Stat(filepath.Join(state, file)); err != nil {
			t.Error(err)
		}
	}
}

// TestF22BothLost: with neither, it does not start with other hashes, and touches nothing.
func TestF22BothLost(t *testing.T) {
	cfg := zero(t)
	in := start(t, cfg)
	in.want(200, `"accepted":1`, "web", `{}`)
	in.end()
	harms["every file empty"](t, filepath.Join(cfg.Data, "control"))
	cut(t, filepath.Join(cfg.Data, "state"), "web.json", func(size int64) int64 { return size / 2 })
	cfg.HTTP.Listen, cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	g, err := New(cfg, Deps{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g.deps.Out = writes(func() { cancel() }) // started after all: no need to wait
	err = g.Run(ctx)
	if err == nil || !strings.Contains(err.Error(), filepath.Join("state", "tables", "web.json")) {
		t.Errorf("started, or the damaged file is not named: %v", err)
	}
	if aside, _ := filepath.Glob(filepath.Join(cfg.Data, "control.damaged-*")); len(aside) != 0 {
		t.Errorf("set aside: %v", aside)
	}
}
