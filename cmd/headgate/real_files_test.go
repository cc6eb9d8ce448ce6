//go:build unix

package main

import (
	"net"
	"os/exec"
	"strings"
	"testing"
)

// F30: with 256 open files and many more clients than that, those that are in are served and their events stored; the others
// are told, and when the first go they get in.
func TestF30ManyClientsAndFewFiles(t *testing.T) {
	b, err := product()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, bin: b.headgate, data: t.TempDir(), log: &logBuffer{}}
	p.start(exec.Command("sh", "-c", `ulimit -n 256 && exec "$0" "$@"`, b.headgate, "serve", "--data", p.data,
		"--set", "http.listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0"))
	if !strings.Contains(p.log.String(), "ulimit -n") {
		t.Errorf("the log does not say that there are few files:\n%s", p.log)
	}
	const request = "POST /v1/streams/web/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nContent-Length: 3\r\n\r\n{}\n"
	var in []net.Conn
	served, turned := 0, 0
	for range 400 {
		c, err := net.Dial("tcp", strings.TrimPrefix(p.http, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		switch status, err := ask(c, request); {
		case err == nil && status == 200:
			served++
			in = append(in, c)
		case err != nil || status == 503: // of many at a time some are closed before they have written
			turned++
		default:
			t.Fatalf("%d %v", status, err)
		}
	}
	if served != 128 {
		t.Errorf("%d served, %d turned away", served, turned)
	}
	for _, c := range in {
		if status, err := ask(c, request); err != nil || status != 200 {
			t.Fatalf("one that is in: %d %v", status, err)
		}
		c.Close()
	}
	p.until("there is room again", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(p.http, "http://"))
		if err != nil {
			return false
		}
		defer c.Close()
		status, err := ask(c, request)
		if status == 200 {
			served++
		}
		return err == nil && status == 200
	})
	if rows := p.tail("web"); len(rows) != 128+served {
		t.Errorf("%d events, want %d", len(rows), 128+served)
	}
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log)
	}
}
