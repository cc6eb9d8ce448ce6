package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// jumping builds the product with a clock that jumps: CLOCK_JUMP=SECONDS@NANOSECONDS says by how much, and how long after the start.
// Go's own package time is replaced for that, so that the server inside and every library see it too; timers and deadlines do not,
// as when somebody sets a machine's clock.
func jumping(t *testing.T) (bin string) {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir, original := t.TempDir(), filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	const reading = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if !strings.Contains(string(text), reading) {
		t.Fatal("Go reads the clock in another way now: change this test")
	}
	changed := strings.Replace(string(text), reading, reading+"\tif mono-startNano >= jumpAfter {\n\t\tsec += jumpBy\n\t}\n", 1)
	const jump = `package time

import "syscall"

var jumpBy, jumpAfter = jumpOf()

func jumpOf() (by, after int64) {
	text, _ := syscall.Getenv("CLOCK_JUMP")
	sign, at := int64(1), false
	for _, c := range text {
		switch {
		case c == '-':
			sign = -1
		case c == '@':
			at = true
		case at:
			after = 10*after + int64(c-'0')
		default:
			by = 10*by + int64(c-'0')
		}
	}
	return sign * by, after
}
`
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		original: write("time.go", changed), filepath.Join(filepath.Dir(original), "jump.go"): write("jump.go", jump),
	}})
	if err != nil {
		t.Fatal(err)
	}
	bin = filepath.Join(dir, "headgate")
	cmd := exec.Command("go", "build", "-overlay", write("overlay.json", string(overlay)), "-o", bin, "../cmd/headgate")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return bin
}

// F26: the clock jumps under load, by minutes and by more than a day, there and back, and then the process is killed; the next one
// finds what was written in the future, or long ago. Nothing is lost; what was not answered is stored once when it is sent again, as long
// as the jump is less than ids are remembered.
func TestF26TheClockJumps(t *testing.T) {
	long(t)
	bin := jumping(t)
	b := newBed(t, result{Fault: "F26", What: "the clock jumps"})
	for _, by := range []time.Duration{5 * time.Minute, -5 * time.Minute, 30 * time.Hour, -30 * time.Hour} {
		b.load.again = by.Abs() < 10*time.Minute
		args := append([]string{"serve", "--data", b.data, "--set", "http.listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0", "--set", "quic.listen=none"}, b.settings...)
		cmd := exec.Command(bin, args...)
		cmd.Env = append(os.Environ(), fmt.Sprintf("CLOCK_JUMP=%d@%d", int(by.Seconds()), time.Second.Nanoseconds()))
		g, ready := run(t, b.data, cmd)
		if !ready {
			t.Fatalf("%v: it ended; log:\n%s", by, g.log)
		}
		over := make(chan struct{})
		before := b.load.acked()
		go func() { b.load.run(g.http, nil); close(over) }()
		<-time.After(3 * time.Second)
		g.kill()
		<-over
		b.Cycles++
		if b.load.acked() == before {
			t.Errorf("%v: nothing was acknowledged", by)
		}
	}
	r := b.finish()
	r.Note = "by 5 minutes and by 30 hours, there and back"
	say(t, r)
}
