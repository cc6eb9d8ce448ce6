package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestF22ControlStoreDeleted: after kill -9 and the loss of the control store, streams, plugins and placement are as
// they were, and both the log and readiness say what happened.
func TestF22ControlStoreDeleted(t *testing.T) {
	b, err := product()
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	p := startGateway(t, data)
	p.headgate(0, "plugin", "push", "accesslog", b.accesslog)
	p.headgate(0, "plugin", "activate", "--stream", "web", "accesslog", "--config", `{"drop_status_from":500}`)
	check := func(events int) {
		t.Helper()
		if status, answer := p.post("web", `{"remote_ip":"192.0.2.1","response":200}`+"\n"+`{"remote_ip":"192.0.2.1","response":503}`); status != 200 ||
			!strings.Contains(answer, `"filtered":1`) || !strings.Contains(answer, `"accepted":1`) {
			t.Errorf("%d %s", status, answer)
		}
		rows := p.tail("web")
		if len(rows) != events || rows[0].Partition != rows[events-1].Partition || rows[events-1].Number != uint64(events) {
			t.Errorf("%+v", rows)
		}
	}
	check(1)
	p.kill()

	control := filepath.Join(data, "control")
	if err := os.RemoveAll(control); err != nil {
		t.Fatal(err)
	}
	p = startGateway(t, data)
	check(2)
	if !strings.Contains(p.log.String(), "THE CONTROL STORE WAS LOST OR DAMAGED") {
		t.Errorf("the log does not say it:\n%s", p.log)
	}
	if ready := p.get("/readyz?verbose"); !strings.Contains(ready, "rebuilt from") || !strings.Contains(ready, `"ready":true`) {
		t.Errorf("readiness: %s", ready)
	}
	p.kill()

	if err := os.RemoveAll(filepath.Join(data, "state")); err != nil {
		t.Fatal(err)
	}
	p = startGateway(t, data)
	check(3)
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log)
	}
}

// get reads a page of the admin API.
func (p *process) get(path string) string {
	p.t.Helper()
	_, body := p.ask("GET", p.admin+path, "", "")
	return body
}
