//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// smallDisk mounts a disk of 64 MiB and returns its path.
func smallDisk(t *testing.T) string {
	t.Helper()
	path := t.TempDir()
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("a small disk can be made by root alone: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(path, unix.MNT_DETACH) })
	return path
}

// fillUp takes all that a disk has left, also what comes free meanwhile, until the test says free.
func fillUp(t *testing.T, disk string) (free func()) {
	t.Helper()
	f, err := os.CreateTemp(disk, "filler")
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range []int{1 << 20, 4096, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, piece))
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
	}
	return func() { f.Close(); os.Remove(f.Name()) }
}

// load is producers that post until stop.
type load struct {
	producers []*producer
	stopped   atomic.Bool
	running   sync.WaitGroup
}

// RoundTrip sends no more requests once the load is stopped.
func (l *load) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.stopped.Load() {
		return nil, io.EOF
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (p *process) load() *load {
	l := &load{}
	client := &http.Client{Transport: l}
	for i := range 4 {
		pr := &producer{key: fmt.Sprintf("producer-%d", i), acked: map[int]bool{}}
		l.producers = append(l.producers, pr)
		l.running.Go(func() { pr.run(client, p.http+"/v1/streams/s/events?ack=durable") })
	}
	return l
}

func (l *load) stop() {
	l.stopped.Store(true)
	l.running.Wait()
}

// M14, F8, F9: the disk fills up under load until not a byte is left, with the embedded backend on it. New work is refused;
// with room it all goes on by itself, with what was acknowledged there once and in order. A start on the full disk succeeds too.
func TestM14TheDiskFillsUpUnderTheEmbeddedBackend(t *testing.T) {
	disk := smallDisk(t)
	data := filepath.Join(disk, "data")
	settings := []string{"--set", "memory=32MiB", "--set", `streams={s: {key: {json: /k}, partitions: 4}}`,
		"--set", "backends={local: {jetstream: {embedded: true, max_bytes: 200MiB}}}", "--set", "spool.max_bytes=100MiB"}
	p := startGateway(t, data, settings...)
	l := p.load()
	p.answers(l.producers)
	<-time.After(300 * time.Millisecond)
	free := fillUp(t, disk)
	p.until("new work is refused", func() bool {
		status, answer := p.post("s", `{}`)
		return status == 503 && strings.Contains(answer, `"code":"spool_full"`)
	})
	// Mostly the store has run into the end of the disk; sometimes its limits were lowered sooner, and it is only full.
	fault := func() bool { return strings.Contains(p.get("/metrics"), `headgate_store_fault{store="events"} 1`) }
	wedged := false
	for end := time.After(3 * time.Second); !wedged; {
		select {
		case <-end:
		case <-time.After(50 * time.Millisecond):
			wedged = fault()
			continue
		}
		break
	}
	if status, ready := p.ask("GET", p.admin+"/readyz?verbose", "", ""); status != 503 || wedged && fault() && !strings.Contains(ready, "make room") {
		t.Errorf("readyz: %d %s", status, ready)
	}
	free()
	p.until("it takes events again", func() bool {
		status, _ := p.post("s", `{"k":"other"}`, "ack=delivered")
		return status == 200
	})
	if page := p.get("/metrics"); wedged && (fault() || strings.Contains(page, `headgate_store_reopened_total{store="events"} 0`)) {
		t.Error("the metrics do not tell that the store was opened again")
	}
	t.Logf("the store was opened again: %v", wedged)
	<-time.After(200 * time.Millisecond)
	l.stop()
	p.drained()
	l.check(t, p.tail("s"))

	for range 3 { // somebody else takes each time what the start was given
		defer fillUp(t, disk)()
		p.kill()
		p = startGateway(t, data, settings...)
		l.check(t, p.tail("s"))
	}
	fillers, err := filepath.Glob(filepath.Join(disk, "filler*"))
	if err != nil || len(fillers) != 3 {
		t.Fatal(fillers, err)
	}
	for _, f := range fillers {
		if err := os.Truncate(f, 0); err != nil {
			t.Fatal(err)
		}
	}
	p.until("it takes events again", func() bool {
		status, _ := p.post("s", `{"k":"other"}`, "ack=delivered")
		return status == 200
	})
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log)
	}
}

// check is checkNothingLost of what the load brought.
func (l *load) check(t *testing.T, rows []row) {
	t.Helper()
	var own []row
	for _, r := range rows {
		if strings.Contains(r.Data, "producer-") {
			own = append(own, r)
		}
	}
	checkNothingLost(t, own, l.producers)
}

// F8, M14: the spool leaves its reserve on a disk that is smaller than max_bytes, and what a start needs besides: a start on a
// disk without a free byte delivers what the spool has.
func TestM14TheSpoolStopsBeforeTheDiskIsFull(t *testing.T) {
	disk, n := smallDisk(t), newNode(t)
	data := filepath.Join(disk, "data")
	settings := n.settings("--set", "memory=32MiB", "--set", "spool.max_bytes=200MiB")
	n.down.Store(10)
	p := startGateway(t, data, settings...)
	pr := &producer{key: "producer", acked: map[int]bool{}}
	answer, status := "", 200
	for ; status == 200 && pr.next < 1000; pr.next++ {
		status, answer = p.post("s", fmt.Sprintf(`{"k":%q,"n":%d}`+"\n"+`{"k":"filler","x":%q}`, pr.key, pr.next, noise(200_000)))
		pr.acked[pr.next] = status == 200
	}
	delete(pr.acked, pr.next-1)
	var st unix.Statfs_t
	if err := unix.Statfs(disk, &st); err != nil {
		t.Fatal(err)
	}
	left := int64(st.Bavail) * st.Bsize
	if status != 503 || !strings.Contains(answer, `"code":"spool_full"`) || pr.next < 100 || left < 2<<20 {
		t.Errorf("after %d requests: %d %s; the disk has %d bytes left", pr.next, status, answer, left)
	}
	if page := p.get("/metrics"); !strings.Contains(page, `headgate_spool_failed_writes_total{stream="s"} 0`) {
		t.Error("the spool has run into the end of the disk")
	}
	free := fillUp(t, disk)
	defer free()
	p.kill()
	p = startGateway(t, data, settings...)
	if status, ready := p.ask("GET", p.admin+"/readyz?verbose", "", ""); status != 503 || !strings.Contains(ready, "kept free") {
		t.Errorf("readyz on a full disk: %d %s", status, ready)
	}
	p.recovers(n, pr)
}

// recovers checks that with its node back the gateway delivers all that was acknowledged, takes events again, and stops well.
func (p *process) recovers(n *node, pr *producer) {
	t := p.t
	t.Helper()
	n.down.Store(0)
	p.drained()
	if !n.has(t, []*producer{pr}) {
		t.Error("something that was acknowledged has not arrived")
	}
	p.until("it takes events again", func() bool { status, _ := p.post("s", `{"k":"other"}`); return status == 200 })
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log)
	}
}

// F8, M14: a disk without a free byte is started on again and again, while somebody else takes all that each start was given and
// left: each refuses what is new, and the last one, whose node is back, delivers what the spool has, and takes events again.
func TestM14F8StartsOnAFullDisk(t *testing.T) {
	disk, n := smallDisk(t), newNode(t)
	data := filepath.Join(disk, "data")
	settings := n.settings("--set", "memory=32MiB", "--set", "spool.max_bytes=200MiB")
	n.down.Store(10)
	p := startGateway(t, data, settings...)
	pr := &producer{key: "producer", acked: map[int]bool{}}
	for ; pr.next < 60; pr.next++ {
		if status, answer := p.post("s", fmt.Sprintf(`{"k":%q,"n":%d}`+"\n"+`{"k":"filler","x":%q}`, pr.key, pr.next, noise(200_000))); status != 200 {
			t.Fatal(status, answer)
		}
		pr.acked[pr.next] = true
	}
	const starts = 6
	for range starts {
		p.kill()
		defer fillUp(t, disk)()
		p = startGateway(t, data, settings...)
		if status, answer := p.post("s", `{"k":"new"}`); status != 503 || !strings.Contains(answer, `"code":"spool_full"`) {
			t.Errorf("on a full disk: %d %s", status, answer)
		}
	}
	p.recovers(n, pr)
}
