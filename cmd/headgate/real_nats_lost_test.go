package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// N02, F13: an external NATS server comes back without what it confirmed last, as after a power cut with its default options. It gets
// that again from the tail of the spool, under the same numbers and in order, also in lanes that are idle.
func TestN02AnExternalNATSThatLostWhatItConfirmed(t *testing.T) {
	server := newNATS(t, "max_payload: 8MB")
	server.start()
	p := startGateway(t, t.TempDir(), "--set", fmt.Sprintf("backends={lake: {jetstream: {url: %q}}}", server.url()),
		"--set", `streams={s: {backend: lake, key: {json: /k}, partitions: 4}}`)
	var producers []*producer
	for i := range 6 {
		producers = append(producers, &producer{key: fmt.Sprintf("producer-%d", i), acked: map[int]bool{}})
	}
	post := func() {
		t.Helper()
		for _, pr := range producers {
			p.until("the backend takes an event", func() bool {
				status, _ := p.post("s", fmt.Sprintf(`{"k":%q,"n":%d}`, pr.key, pr.next), "ack=delivered")
				if status == 200 {
					pr.acked[pr.next] = true
				}
				pr.next++
				return status == 200
			})
		}
	}
	for range 5 {
		post()
	}
	data := filepath.Join(filepath.Dir(server.conf), "data")
	older := filepath.Join(t.TempDir(), "data")
	server.kill()
	if err := os.CopyFS(older, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	server.start()
	for range 5 {
		post()
	}
	server.kill()
	err := os.RemoveAll(data)
	if err == nil {
		err = os.CopyFS(data, os.DirFS(older))
	}
	if err != nil {
		t.Fatal(err)
	}
	server.start()
	p.until("what was lost is sent again", func() bool {
		for line := range strings.Lines(p.get("/metrics")) {
			if n, ok := strings.CutPrefix(line, `headgate_backend_resent_events_total{stream="s"} `); ok {
				resent, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
				return err == nil && resent >= 30
			}
		}
		return false
	})
	post()
	checkNothingLost(t, p.tail("s"), producers)
	if page := p.get("/metrics"); !strings.Contains(page, `headgate_backend_lost_events_total{stream="s"} 0`) {
		t.Error("something is said to be lost")
	}
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log)
	}
}
