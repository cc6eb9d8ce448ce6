package forward

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/internal/logfolder"
	"github.com/headgate-io/headgate/internal/memdisk"
)

// slowDisk is a disk in memory that takes so long to sync a segment.
type slowDisk struct {
	logfolder.Files
	sync time.Duration
}

func (d slowDisk) Open(name string, create bool) (logfolder.File, error) {
	f, err := d.Files.Open(name, create)
	if err != nil || !strings.HasSuffix(name, ".seg") {
		return f, err
	}
	return slowFile{f, d.sync}, nil
}

type slowFile struct {
	logfolder.File
	sync time.Duration
}

func (f slowFile) Sync() error {
	<-time.After(f.sync)
	return f.File.Sync()
}

// rounds is a forwarder with a spool on a slow disk, in a bubble: what computes takes no time there.
type rounds struct {
	*Forwarder
	t     *testing.T
	spool *spool.Spool
	all   sync.WaitGroup
	mu    sync.Mutex
	took  []time.Duration // what requests have waited
}

func startRounds(t *testing.T, cfg Config, m *memory, sync time.Duration) *rounds {
	t.Helper()
	s, err := spool.New(spool.Config{}, spool.Deps{Files: slowDisk{memdisk.New(), sync}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(cfg, m, Deps{Spool: s, Backlog: s.Backlog, Room: s.Room})
	if err != nil {
		t.Fatal(err)
	}
	r := &rounds{Forwarder: f, t: t, spool: s}
	ctx, cancel := context.WithCancel(context.Background())
	var running, spooling = make(chan error, 1), make(chan error, 1)
	go func() { running <- f.Run(ctx) }()
	go func() { spooling <- s.Run(ctx) }()
	t.Cleanup(func() {
		f.Close()
		<-running
		s.Close()
		<-spooling
		cancel()
	})
	synctest.Wait()
	return r
}

// mute is a backend that never answers: what becomes safe does so on the disk.
func mute() *memory {
	return &memory{answer: func(ctx context.Context, _ *Run) error {
		<-ctx.Done()
		return ctx.Err()
	}}
}

// send has a request for durable with one event for a partition wait on a goroutine of its own.
func (r *rounds) send(partition int32) {
	b := batch(event.Durable, "event")
	b.Events[0].Partition = partition
	receipt, began := forward(r.t, r.Forwarder, b), time.Now()
	r.all.Go(func() {
		if err := receipt.Wait(r.t.Context(), event.Durable); err != nil {
			r.t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.took = append(r.took, time.Since(began))
	})
}

// wants compares how long requests waited.
func (r *rounds) wants(want ...time.Duration) {
	r.t.Helper()
	r.all.Wait()
	for i, d := range want {
		if len(r.took) != len(want) || r.took[i] != d {
			r.t.Fatalf("requests waited %s, want %s", r.took, want)
		}
	}
}

// A10: who comes alone waits for a sync and not for company.
func TestA10TheFirstAfterASilenceIsSealedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const disk = 200 * time.Microsecond
		r := startRounds(t, config(2), mute(), disk)
		for range 3 {
			r.send(1)
			<-time.After(10 * time.Millisecond)
		}
		r.wants(disk, disk, disk)
	})
}

// A10: nor does one client that sends its next request when the last is answered, if the disk takes as long as disks do.
func TestA10OneClientWaitsForTheDiskAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const disk = 400 * time.Microsecond
		r := startRounds(t, config(2), mute(), disk)
		for range 5 {
			r.send(1)
			r.all.Wait()
		}
		r.wants(disk, disk, disk, disk, disk)
	})
}

// A10: what comes while a round is written goes into the next one, of all lanes with one sync.
func TestA10OneSyncServesAllLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const disk = 3 * time.Millisecond
		r := startRounds(t, config(16), mute(), disk)
		r.send(0)
		synctest.Wait()
		<-time.After(disk / 2)
		for range 2 { // the second of each lane finds its frame open
			for p := range int32(16) {
				r.send(p)
			}
		}
		r.all.Wait()
		if st := r.spool.Stats(); st.Groups != 2 || st.Written != 17 {
			t.Errorf("%d syncs for %d frames, want 2 for 17", st.Groups, st.Written)
		}
		for _, d := range r.took[1:] {
			if d != disk/2+disk {
				t.Errorf("a request waited %s, want %s", d, disk/2+disk)
			}
		}
	})
}

// Rounds begin at least half a linger apart, however fast the disk is.
func TestRoundsLeaveTimeForCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRounds(t, config(4), mute(), 0)
		for i := range int32(1000) { // of 10 us
			r.send(i % 4)
			<-time.After(10 * time.Microsecond)
		}
		r.all.Wait()
		if st := r.spool.Stats(); st.Groups < 19 || st.Groups > 22+many {
			t.Errorf("%d syncs in 10 ms, want 20 or so, and some for the first requests", st.Groups)
		}
		for _, d := range r.took {
			if d > r.cfg.LingerWaiting/2 {
				t.Fatalf("a request waited %s", d)
			}
		}
	})
}

// While the disk does not answer, the backend makes events safe.
func TestARoundThatIsNotWrittenHoldsUpNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const confirm = time.Millisecond
		r := startRounds(t, config(1), &memory{answer: func(context.Context, *Run) error {
			<-time.After(confirm)
			return nil
		}}, time.Hour)
		r.send(0)
		synctest.Wait()
		r.send(0)
		r.wants(confirm, r.cfg.LingerWaiting+pace+confirm)
	})
}
