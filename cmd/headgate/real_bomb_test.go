package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	brotli "github.com/molecule-man/go-brrr"
)

// F43, C01: a bomb within the default ratio, whose limit is 64 MiB, costs a gateway with default settings 32 MiB more than
// it has at most.
func TestF43BombsInTheRealGateway(t *testing.T) {
	p := startGateway(t, t.TempDir())
	p.post("bombs", "{}\n")
	for coding, body := range map[string][]byte{
		"gzip":    bomb(t, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil }),
		"deflate": bomb(t, func(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil }),
		"zstd":    bomb(t, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }),
		"br":      bomb(t, func(w io.Writer) (io.WriteCloser, error) { return brotli.NewWriter(w, 5) }),
		"snappy":  bomb(t, func(w io.Writer) (io.WriteCloser, error) { return snappy.NewBufferedWriter(w), nil }),
	} {
		before := p.restMemory()
		start := time.Now()
		req, err := http.NewRequest("POST", p.http+"/v1/streams/bombs/events", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/octet-stream")
		req.Header.Set("Content-Encoding", coding)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 413 || !strings.Contains(string(answer), `"limit":67108864`) {
			t.Errorf("%s: %d %s", coding, resp.StatusCode, answer)
		}
		took, grown := time.Since(start), p.peakMemory()-before
		t.Logf("%-7s %8d bytes: %3d ms, %5.1f MiB", coding, len(body), took.Milliseconds(), float64(grown)/(1<<20))
		if grown > 32<<20 {
			t.Errorf("%s: %d bytes more", coding, grown)
		}
	}
}

// bomb is noise of so many bytes that the ratio is within its limit, and 200 MiB of zeros.
func bomb(t *testing.T, open func(io.Writer) (io.WriteCloser, error)) []byte {
	t.Helper()
	noise := make([]byte, 400<<10)
	random := rand.New(rand.NewPCG(3, 4))
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	var b bytes.Buffer
	w, err := open(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = w.Write(noise); err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for range 200 {
		if _, err = w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// restMemory forgets the most memory p has had so far, and returns what it has.
func (p *process) restMemory() int64 {
	p.t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0); err != nil {
		p.t.Skipf("the system does not tell the peak of a process's memory: %v", err)
	}
	return p.memory("VmRSS")
}

// peakMemory is the most p has had since restMemory.
func (p *process) peakMemory() int64 { return p.memory("VmHWM") }

// memory reads a line of /proc/PID/status, in bytes.
func (p *process) memory(name string) int64 {
	p.t.Helper()
	doc, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Skipf("the system does not tell the memory of a process: %v", err)
	}
	for line := range strings.Lines(string(doc)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				p.t.Fatal(err)
			}
			return n << 10
		}
	}
	p.t.Skipf("no %s in /proc", name)
	return 0
}
