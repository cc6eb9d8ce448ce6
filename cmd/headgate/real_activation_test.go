package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestM11NoStreamStartsWithoutItsPlugins: whatever is lost of its activation in the control store, in its copy or in both.
func TestM11NoStreamStartsWithoutItsPlugins(t *testing.T) {
	b, err := product()
	if err != nil {
		t.Fatal(err)
	}
	original := t.TempDir()
	p := startGateway(t, original)
	p.headgate(0, "plugin", "push", "accesslog", b.accesslog)
	p.headgate(0, "plugin", "activate", "--stream", "web", "accesslog", "--config", `{"drop_status_from":500}`)
	if code := p.terminate(); code != 0 {
		t.Fatalf("exit %d\n%s", code, p.log)
	}
	store := filepath.Join("control", "jetstream", "$G", "streams", "KV_headgate_activations", "msgs", "1.blk")
	flip := func(path string) error {
		content, err := os.ReadFile(path)
		if err == nil {
			content[len(content)/2] ^= 0x20
			err = os.WriteFile(path, content, 0o600)
		}
		return err
	}
	copied := filepath.Join("state", "activations", "web.json")
	for name, c := range map[string]struct {
		inStore, inCopy func(path string) error
		starts          bool
	}{
		"the store is damaged":                   {flip, nil, true},
		"the store lost the file":                {os.Remove, nil, true},
		"the copy is damaged":                    {nil, flip, true},
		"the copy lost the file":                 {nil, os.Remove, true},
		"the store is damaged, the copy lost it": {flip, os.Remove, false},
		"both lost it":                           {os.Remove, os.Remove, false},
		"both are damaged":                       {flip, flip, false},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			if err := os.CopyFS(data, os.DirFS(original)); err != nil {
				t.Fatal(err)
			}
			for path, do := range map[string]func(string) error{store: c.inStore, copied: c.inCopy} {
				if do != nil {
					if err := do(filepath.Join(data, path)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !c.starts {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, b.headgate, "serve", "--data", data, "--set", "http.listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0")
				out, err := cmd.CombinedOutput()
				if err == nil || !strings.Contains(string(out), filepath.Join(data, copied)) || !strings.Contains(string(out), "from a backup") {
					t.Errorf("%v\n%s", err, out)
				}
				return
			}
			p := startGateway(t, data)
			if status, answer := p.post("web", `{"remote_ip":"192.0.2.1","response":503}`+"\n"); status != 200 || !strings.Contains(answer, `"filtered":1`) {
				t.Errorf("%d %s", status, answer)
			}
		})
	}
}
