//go:build unix

package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestH10IdleConnections measures what idle connections cost, on demand: HEADGATE_IDLE_CONNECTIONS=20000 go test -run H10 -v
// ./cmd/headgate. Half of them have sent a request, half nothing. With HEADGATE_IDLE_TLS=1 they speak TLS.
func TestH10IdleConnections(t *testing.T) {
	dial, each := net.Dial, 16<<10 // bytes a connection may cost
	secure := os.Getenv("HEADGATE_IDLE_TLS") != ""
	if secure {
		each = 64 << 10
		dial = func(network, addr string) (net.Conn, error) {
			return tls.Dial(network, addr, &tls.Config{InsecureSkipVerify: true})
		}
	}
	n, err := strconv.Atoi(os.Getenv("HEADGATE_IDLE_CONNECTIONS"))
	if err != nil {
		t.Skip("on demand: set HEADGATE_IDLE_CONNECTIONS to how many")
	}
	files := uint64(n) + 1100 // of this process, and of the gateway, which has the same limit
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files, Max: files}); err != nil {
		t.Skipf("no more than so many open files are allowed here: set %d: %v", files, err)
	}
	p := startGateway(t, t.TempDir(), "--set", "http.max_connections_per_address=0", "--set", "http.read_timeout=10m",
		"--set", "http.tls.listen=127.0.0.1:0", "--set", "http.idle_timeout=10m", "--set", fmt.Sprintf("http.max_connections=%d", n+1))
	for range 100 { // warm
		p.post("idle", "{}\n")
	}
	http.DefaultClient.CloseIdleConnections()
	before := p.memory("VmRSS")
	addr := strings.TrimPrefix(p.http, "http://")
	if secure {
		addr = strings.TrimPrefix(p.https(), "https://")
	}
	const request = "POST /v1/streams/idle/events?ack=accepted HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nContent-Length: 3\r\n\r\n{}\n"
	open := make([]net.Conn, n)
	defer func() {
		for _, c := range open {
			if c != nil {
				c.Close()
			}
		}
	}()
	var all sync.WaitGroup
	const hands = 32
	for hand := range hands {
		all.Go(func() {
			for i := hand; i < n; i += hands {
				c, err := dial("tcp", addr)
				if err != nil {
					t.Errorf("connection %d: %v", i, err)
					return
				}
				open[i] = c
				if i%2 == 0 {
					if status, err := ask(c, request); err != nil || status != 202 {
						t.Errorf("connection %d: %d %v", i, status, err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	var lines string
	p.until("all connections are known", func() bool {
		lines = p.get("/metrics")
		return p.memory("VmRSS") > 0 && strings.Contains(lines, "go_goroutines")
	})
	after := p.memory("VmRSS")
	cost := (after - before) / int64(n)
	t.Logf("%d connections: %.1f MiB more, %.1f KiB each", n, float64(after-before)/(1<<20), float64(cost)/(1<<10))
	if cost > int64(each) {
		t.Errorf("a connection costs %d bytes, want at most %d", cost, each)
	}
	last, err := dial("tcp", addr) // the last there is room for
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	if status, err := ask(last, request); err != nil || status != 202 {
		t.Errorf("the last one: %d %v", status, err)
	}
	for range 10 {
		surplus, err := net.Dial("tcp", strings.TrimPrefix(p.http, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if status, err := ask(surplus, ""); err != nil || status != 503 {
			t.Errorf("surplus: %d %v", status, err)
		}
		surplus.Close()
	}
	for i := 0; i < n; i += 97 {
		if status, err := ask(open[i], request); err != nil || status != 202 {
			t.Errorf("connection %d afterwards: %d %v", i, status, err)
		}
	}
}

// ask sends a request and reads the answer.
func ask(c net.Conn, request string) (status int, err error) {
	if _, err := io.WriteString(c, request); err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 4096), nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}
