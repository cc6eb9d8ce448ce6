package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// disk is an ext4 file system on a loop device, of which the power can be cut.
type disk struct {
	t     testing.TB
	image string
	path  string // where it is mounted
}

// newDisk makes one of so many bytes, or skips the test with the reason.
func newDisk(t testing.TB, size int64) *disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root may mount a file system")
	}
	dir := t.TempDir()
	d := &disk{t: t, image: filepath.Join(dir, "image"), path: filepath.Join(dir, "disk")}
	f, err := os.Create(d.image)
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Close(), os.Mkdir(d.path, 0o700))
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", d.image).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: mkfs.ext4: %v %s", err, out)
	}
	if err := d.mount(); err != nil {
		t.Skipf("SKIPPED: no loop device can be mounted here: %v", err)
	}
	t.Cleanup(func() { d.unmount() })
	return d
}

// mount recovers from the journal what it has.
func (d *disk) mount() error {
	if out, err := exec.Command("mount", "-o", "loop", d.image, d.path).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func (d *disk) unmount() {
	if out, err := exec.Command("umount", d.path).CombinedOutput(); err != nil {
		d.t.Errorf("umount: %v %s", err, out)
	}
}

// From linux/ext4.h: the file system stops at once, and what is in memory only is never written, the journal's end
// included. Every call after it is an I/O error.
const (
	shutdown           = 0x8004587d // EXT4_IOC_SHUTDOWN, _IOR('X', 125, __u32)
	shutdownNoLogFlush = 2
)

// cut is a power cut, but for the processes, which go on and find that nothing can be written. It takes a moment: a sync that
// is under way at that time may be told that it succeeded, and what it synced is gone (seen with plain files too). No answer
// leaves a machine without power, so answers to requests of that moment do not count; those before and behind it do.
func (d *disk) cut(of *load) (discount func()) {
	d.t.Helper()
	f, err := os.Open(d.path)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	from := time.Now()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), shutdown, shutdownNoLogFlush); err != nil {
		d.t.Fatalf("the shutdown ioctl: %v", err)
	}
	to := time.Now()
	return func() { of.inFlight(from, to) }
}

// again is the machine's next start.
func (d *disk) again() {
	d.t.Helper()
	d.unmount()
	if err := d.mount(); err != nil {
		d.t.Fatal(err)
	}
}

// F2: the power is cut under load, and the process lives on for a while on a disk that takes nothing: what it acknowledges
// then counts too. The data folder with spool, JetStream and control store is on the disk.
func TestF2PowerCut(t *testing.T) {
	for _, backend := range []string{"JetStream", "a node, half of the time down"} {
		t.Run(backend, func(t *testing.T) {
			const each = 10 // cuts of one data folder
			var runs []result
			for seed := range scale(1, 3, 200) {
				b := newBed(t, result{Fault: "F2", What: "power cut, " + backend, Seed: uint64(seed)})
				if backend != "JetStream" {
					b.onNode()
				}
				runs = append(runs, record(t, cuts(b, newDisk(t, 512<<20), scale(1, each, 1<<30))))
			}
			fmt.Println(line(runs))
		})
	}
}

func cuts(b *bed, d *disk, n int) result {
	b.data = filepath.Join(d.path, "data")
	random := rand.New(rand.NewPCG(b.Seed, 2))
	for range n {
		if b.node != nil {
			b.node.down.Store(random.Int32N(2) * 10)
		}
		g := start(b.t, b.data, "", b.settings...)
		b.Recover = max(b.Recover, g.recovery.Seconds())
		quit, over := make(chan struct{}), make(chan struct{})
		go func() { b.load.run(g.http, quit); close(over) }()
		<-time.After(time.Duration(20+random.IntN(500)) * time.Millisecond)
		discount := d.cut(b.load)
		<-time.After(time.Duration(random.IntN(100)) * time.Millisecond)
		g.kill()
		close(quit)
		<-over
		discount()
		d.again()
		b.Cycles++
	}
	return b.finish()
}
