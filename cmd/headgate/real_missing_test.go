package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// F14: the folder of a spool is removed while the gateway runs and its node takes nothing: what was acknowledged before and after
// arrives, also after a kill. Removed while no gateway runs, it is an error that is seen.
func TestF14TheFolderOfASpoolIsRemoved(t *testing.T) {
	data, n := t.TempDir(), newNode(t)
	n.down.Store(10)
	p := startGateway(t, data, n.settings()...)
	pr := &producer{key: "producer", acked: map[int]bool{}}
	post := func() {
		t.Helper()
		if status, answer := p.post("s", fmt.Sprintf(`{"k":%q,"n":%d}`, pr.key, pr.next)); status != 200 {
			t.Fatalf("%d %s", status, answer)
		}
		pr.acked[pr.next] = true
		pr.next++
	}
	removed := func(gone string) {
		if err := os.RemoveAll(filepath.Join(data, gone)); err != nil {
			t.Fatal(err)
		}
	}
	for _, gone := range []string{"spool/s", "spool"} {
		for range 3 {
			post()
		}
		removed(gone)
		p.until("it is noticed", func() bool {
			segments, _ := filepath.Glob(filepath.Join(data, "spool", "s", "*.seg"))
			return len(segments) > 0
		})
		post()
	}
	if log := p.log.String(); !strings.Contains(log, "A FILE OF THE SPOOL WAS REMOVED") || !strings.Contains(log, "are safe again") {
		t.Errorf("the log does not say so:\n%s", log)
	}
	p.headgate(0, "spool", "verify", data)
	p.kill()
	n.down.Store(0)
	p = startGateway(t, data, n.settings()...)
	p.until("everything acknowledged arrives", func() bool { return n.has(t, []*producer{pr}) })
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log)
	}
	removed("spool/s")
	p = startGateway(t, data, n.settings()...)
	if log := p.log.String(); !strings.Contains(log, "THE SPOOL OF A STREAM WAS REMOVED") {
		t.Errorf("the log does not say so:\n%s", log)
	}
	if page := p.get("/metrics"); !strings.Contains(page, `headgate_spool_removed_files_total{stream="s"} 1`) || !strings.Contains(page, `headgate_spool_removed_files_total{stream="other"} 0`) {
		t.Error("no series says so")
	}
	if _, ready := p.ask("GET", p.admin+"/readyz?verbose", "", ""); !strings.Contains(ready, "its spool was removed") {
		t.Error(ready)
	}
}

// F07: segments that are removed while no gateway runs are an error in the log, in the metrics and of verify.
func TestF07ASegmentIsMissing(t *testing.T) {
	data, n := t.TempDir(), newNode(t)
	n.down.Store(10)
	p := startGateway(t, data, n.settings("--set", "spool.max_bytes=1MiB")...)
	for i := range 8 { // a file is 64 KiB
		if status, answer := p.post("s", fmt.Sprintf(`{"k":"a","n":%d,"x":%q}`, i, noise(50_000))); status != 200 {
			t.Fatalf("%d %s", status, answer)
		}
	}
	p.kill()
	segments, err := filepath.Glob(filepath.Join(data, "spool", "s", "*.seg"))
	if err != nil || len(segments) < 3 {
		t.Fatal(segments, err)
	}
	if err := os.Remove(segments[1]); err != nil {
		t.Fatal(err)
	}
	out, _ := p.headgate(1, "spool", "verify", data)
	if !strings.Contains(out, "lost: partition") || !strings.Contains(out, "files missing: 0000000000000002-*.seg") {
		t.Error(out)
	}
	n.down.Store(0)
	p = startGateway(t, data, n.settings("--set", "spool.max_bytes=1MiB")...)
	p.drained()
	rows, _ := n.rows(t)
	lost := 8 - len(rows)
	page := p.get("/metrics")
	for _, name := range []string{"headgate_spool_missing_events_total", "headgate_lost_events_total"} {
		if !strings.Contains(page, fmt.Sprintf("%s{stream=\"s\"} %d\n", name, lost)) || lost == 0 {
			t.Errorf("%d events are lost, and %s does not say so", lost, name)
		}
	}
	if !strings.Contains(p.log.String(), "EVENTS IN THE SPOOL ARE LOST") {
		t.Errorf("the log does not say so:\n%s", p.log)
	}
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log)
	}
	p.headgate(0, "spool", "verify", data)
}

// noise is text that does not compress well.
func noise(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789abcdef"[rand.IntN(16)]
	}
	return string(b)
}

// drained waits until no event is on its way.
func (p *process) drained() {
	p.t.Helper()
	p.until("everything is delivered", func() bool {
		for line := range strings.Lines(p.get("/metrics")) {
			if (strings.HasPrefix(line, "headgate_lane_events{") || strings.HasPrefix(line, "headgate_spool_events{")) && !strings.HasSuffix(line, " 0\n") {
				return false
			}
		}
		return true
	})
}

// N02, F13: a block of the embedded backend, or all of its folder, is deleted while the gateway runs. That is noticed in seconds, it is put back with all
// that was written to it, and nothing more goes into a file that is gone.
func TestN02ABlockIsDeletedWhileInUse(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what was written to a deleted file can be read again on Linux alone")
	}
	for _, gone := range []string{"jetstream/jetstream/$G/streams/HEADGATE_s/msgs/1.blk", "jetstream"} {
		t.Run(filepath.Base(gone), func(t *testing.T) { removedWhileInUse(t, gone) })
	}
}

// holds tells whether a file is open for reading alone, as the one that is put back when it vanishes is.
func (p *process) holds(path string) bool {
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.cmd.Process.Pid))
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err != nil || to != path {
			continue
		}
		info, err := os.ReadFile(strings.Replace(fd, "/fd/", "/fdinfo/", 1))
		if _, flags, ok := strings.Cut(string(info), "flags:"); err == nil && ok {
			flags, _, _ = strings.Cut(strings.TrimSpace(flags), "\n")
			if mode, err := strconv.ParseUint(flags, 8, 64); err == nil && mode&3 == 0 {
				return true
			}
		}
	}
	return false
}

func removedWhileInUse(t *testing.T, gone string) {
	data := t.TempDir()
	settings := []string{"--set", "streams={s: {key: {json: /k}, partitions: 4}}"}
	p := startGateway(t, data, settings...)
	pr := &producer{key: "producer", acked: map[int]bool{}}
	post := func() {
		t.Helper()
		if status, answer := p.post("s", fmt.Sprintf(`{"k":%q,"n":%d}`, pr.key, pr.next), "ack=delivered"); status != 200 {
			t.Fatalf("%d %s", status, answer)
		}
		pr.acked[pr.next] = true
		pr.next++
	}
	for range 20 {
		post()
	}
	p.until("the block and the stream's configuration are held open", func() bool { // it is looked once a second
		stream := filepath.Join(data, "jetstream/jetstream/$G/streams/HEADGATE_s")
		return p.holds(filepath.Join(stream, "msgs", "1.blk")) && p.holds(filepath.Join(stream, "meta.inf"))
	})
	if err := os.RemoveAll(filepath.Join(data, gone)); err != nil {
		t.Fatal(err)
	}
	post()
	p.until("it is noticed", func() bool {
		return strings.Contains(p.get("/metrics"), `headgate_store_reopened_total{store="events"} 1`)
	})
	for _, says := range []string{"FILES OF THE STORE WERE REMOVED", "a deleted file of the store was put back"} {
		if !strings.Contains(p.log.String(), says) {
			t.Errorf("the log does not say %s:\n%s", says, p.log)
		}
	}
	p.until("events are taken", func() bool {
		status, _ := p.post("s", fmt.Sprintf(`{"k":%q,"n":%d}`, pr.key, pr.next), "ack=delivered")
		pr.acked[pr.next] = status == 200
		return status == 200
	})
	p.kill()
	p = startGateway(t, data, settings...)
	checkNothingLost(t, p.tail("s"), []*producer{pr})
	p.terminate()
}
