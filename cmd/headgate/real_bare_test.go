package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// TestBareServer is a server that answers and does nothing else, in a process of its own, for tests that measure time: what the
// machine and the client make of a request.
func TestBareServer(t *testing.T) {
	if os.Getenv("HEADGATE_BARE") == "" {
		t.Skip("started by tests that measure time")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(bareMark + "http://" + ln.Addr().String())
	go fasthttp.Serve(ln, func(c *fasthttp.RequestCtx) { c.SetBodyString("{}") })
	io.Copy(io.Discard, os.Stdin) // until who started it is gone
	os.Exit(0)
}

const bareMark = "bare server: "

// bareServer starts it and returns its base URL.
func bareServer(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run", "^TestBareServer$")
	cmd.Env = append(os.Environ(), "HEADGATE_BARE=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, base, ok := strings.Cut(lines.Text(), bareMark); ok {
			return base
		}
	}
	t.Fatal("the bare server did not start")
	return ""
}
