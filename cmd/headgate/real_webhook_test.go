package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// receiver is an HTTP node that keeps the payloads it is sent, by partition.
type receiver struct {
	mu       sync.Mutex
	payloads map[string][]byte
	encoding string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	partition := req.Header.Get("Headgate-Partition")
	r.payloads[partition] = append(r.payloads[partition], body...)
	r.encoding = req.Header.Get("Content-Encoding")
}

// TestHTTPNodes delivers an access log to two HTTP nodes with each codec and reads it with the codec's own tool.
func TestHTTPNodes(t *testing.T) {
	kept, dropped := split(t, sampleFile(t))
	for _, c := range []struct{ codec, encoding, tool string }{
		{"zstd", "zstd", "zstd -dcq"}, {"lz4", "lz4", "lz4 -dcq"}, {"gzip", "gzip", "gzip -dc"}, {"none", "", "cat"}, {"s2", "s2", ""},
	} {
		t.Run(c.codec, func(t *testing.T) {
			nodes := []*receiver{{payloads: map[string][]byte{}}, {payloads: map[string][]byte{}}}
			var urls []string
			for _, n := range nodes {
				server := httptest.NewServer(n)
				defer server.Close()
				urls = append(urls, server.URL+"/ingest")
			}
			p := startGateway(t, t.TempDir(),
				"--set", fmt.Sprintf("backends={lake: {webhook: {nodes: [%s]}}}", strings.Join(urls, ", ")),
				"--set", fmt.Sprintf("streams={web: {backend: lake, codec: %s, key: {json: /remote_ip}}}", c.codec))
			p.headgate(0, "send", "--stream", "web", "--ack", "delivered", sampleFile(t))
			if code := p.terminate(); code != 0 {
				t.Errorf("exit %d\n%s", code, p.log)
			}
			var got []string
			for _, n := range nodes {
				if len(n.payloads) < 2 || n.encoding != c.encoding {
					t.Errorf("a node got %d partitions, Content-Encoding %q", len(n.payloads), n.encoding)
				}
				for _, payload := range n.payloads {
					got = append(got, decoded(t, c.tool, payload)...)
				}
			}
			if c.tool == "" {
				return
			}
			slices.Sort(got)
			if want := slices.Sorted(slices.Values(withDropped(t, kept, dropped))); !slices.Equal(got, want) {
				t.Errorf("the nodes hold %d lines, sent were %d, or other bytes", len(got), len(want))
			}
		})
	}
}

// withDropped returns all lines of the sample: without the plugin none is dropped.
func withDropped(t *testing.T, kept []string, dropped int) []string {
	t.Helper()
	text, err := os.ReadFile(sampleFile(t))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(all) != len(kept)+dropped {
		t.Fatalf("%d lines, %d + %d expected", len(all), len(kept), dropped)
	}
	return all
}

func decoded(t *testing.T, tool string, payload []byte) []string {
	t.Helper()
	if tool == "" {
		return nil
	}
	words := strings.Fields(tool)
	path, err := exec.LookPath(words[0])
	if err != nil {
		t.Skipf("%s is not installed", words[0])
	}
	cmd := exec.Command(path, words[1:]...)
	cmd.Stdin = bytes.NewReader(payload)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// TestStaticBinaryNeedsNothing runs the binary as an unprivileged user in a folder where there is nothing else.
func TestStaticBinaryNeedsNothing(t *testing.T) {
	if _, err := exec.LookPath("chroot"); err != nil || os.Getuid() != 0 {
		t.Skip("needs root and chroot")
	}
	b, err := product()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	binary, err := os.ReadFile(b.headgate)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "headgate"), binary, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(root, "data"), 65532, 65532); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, bin: b.headgate, data: filepath.Join(root, "data"), log: &logBuffer{}}
	p.start(exec.Command("chroot", "--userspec=65532:65532", root, "/headgate", "serve", "--data", "/data",
		"--set", "http.listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0"))
	if status, answer := p.post("web", `{"a":1}`); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log)
	}
}
