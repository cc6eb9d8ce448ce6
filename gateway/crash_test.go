package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
	"github.com/headgate-io/headgate/forward/jetstream"
	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/internal/journal"
	"github.com/headgate-io/headgate/internal/logfolder"
	"github.com/headgate-io/headgate/internal/memdisk"
	"github.com/headgate-io/headgate/internal/window"
	"github.com/headgate-io/headgate/partitioner"
	"github.com/headgate-io/headgate/sdk/consume"
)

// spoolDisk and logDisk are two folders of one disk.
type (
	spoolDisk struct{ *memdisk.Memory }
	logDisk   struct{ *memdisk.Memory }
)

const spoolPart, logPart = "spool/", "log/"

func (d spoolDisk) List() (all []logfolder.Info, err error) {
	infos, err := d.Memory.List()
	for _, i := range infos {
		if name, ok := strings.CutPrefix(i.Name, spoolPart); ok {
			all = append(all, logfolder.Info{Name: name, Size: i.Size})
		}
	}
	return all, err
}
func (d spoolDisk) Open(name string, create bool) (spool.File, error) {
	return d.Memory.Open(spoolPart+name, create)
}
func (d spoolDisk) Remove(name string) error { return d.Memory.Remove(spoolPart + name) }

func (d logDisk) List() (all []logfolder.Info, err error) {
	infos, err := d.Memory.List()
	for _, i := range infos {
		if name, ok := strings.CutPrefix(i.Name, logPart); ok {
			all = append(all, logfolder.Info{Name: name, Size: i.Size})
		}
	}
	return all, err
}
func (d logDisk) Open(name string, create bool) (logfolder.File, error) {
	return d.Memory.Open(logPart+name, create)
}
func (d logDisk) Remove(name string) error { return d.Memory.Remove(logPart + name) }

// diskStream is a stream of one process with its spool and the log of its ids on a disk in memory.
type diskStream struct {
	*stream
	backend *forwardtest.Backend
	run     sync.WaitGroup
	cancel  context.CancelFunc
}

func openOnDisk(t *testing.T, disk *memdisk.Memory) *diskStream {
	t.Helper()
	const partitions = 3
	def, err := define(config.Stream{ID: config.ID{JSON: "/id"}, Partitions: config.Partitions{Max: partitions}}.WithDefaults(), 1, managedByAPI)
	if err != nil {
		t.Fatal(err)
	}
	sp, err := spool.New(spool.Config{Stream: forwardtest.Stream, SegmentBytes: 4000, Linger: time.Millisecond}, spool.Deps{Files: spoolDisk{disk}})
	if err != nil {
		t.Fatal(err)
	}
	s := &diskStream{backend: &forwardtest.Backend{}, stream: &stream{name: forwardtest.Stream, partitioner: partitioner.New(equalTable(t, partitions), nil), spool: sp, ids: newWindow(&def.config.ID)}}
	s.idLog = recoverIDs(t, disk, s.ids)
	if s.forwarder, err = forward.New(forward.Config{Stream: forwardtest.Stream, Gateway: forwardtest.Gateway, Partitions: partitions, FrameEvents: 7}, s.backend,
		forward.Deps{Spool: sp, Backlog: sp.Backlog, Room: sp.Room}); err != nil {
		t.Fatal(err)
	}
	s.current.Store(def)
	s.chain.Store(&link{})
	return s
}

func recoverIDs(t *testing.T, disk *memdisk.Memory, ids *window.Set) *journal.Journal {
	t.Helper()
	now := time.Now()
	j, whole, err := journal.Open(journal.Deps{Files: logDisk{disk}, Snapshot: ids.Snapshot}, func(record []byte) { ids.Restore(record, now) })
	if err != nil {
		t.Fatal(err)
	}
	ids.Keep(j, whole, now)
	return j
}

// recall does what a start does behind an unclean stop.
func (s *diskStream) recall(runs []forward.Run) {
	r := newRecollection(s.stream, window.Secret{}, time.Now())
	r.readSpool(s.spool)
	for i := range runs {
		r.run(&jetstream.Message{ContentEncoding: runs[i].ContentEncoding, Payload: runs[i].Payload, Time: time.Now()})
	}
	r.finish()
}

func (s *diskStream) start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.run.Go(func() { _ = s.spool.Run(ctx) })
	s.run.Go(func() { _ = s.idLog.Run(ctx) })
	s.run.Go(func() { _ = s.forwarder.Run(ctx) })
}

func (s *diskStream) end() {
	s.cancel()
	s.run.Wait()
}

// crash is a moment: the disks that it may leave, what the backend has, and whose events were answered.
type crash struct {
	op        int
	kill, cut *memdisk.Memory
	runs      []forward.Run
	acked     map[string]bool
}

// F01, F02, F46, M03: at each operation of the disk, of the spool or of the log of ids, the process is killed or the power
// cut. An id that is known behind that is one whose event is in the spool or in the backend, always: no event is lost for
// a repetition. And the id of each of these is known, answered or not: a repetition is not stored twice.
func TestM03NoIDWithoutItsEvent(t *testing.T) {
	for name, refuses := range map[string]int{"backend up": 0, "backend down": 1, "backend flapping": 3} {
		t.Run(name, func(t *testing.T) {
			crashes := crashEverywhere(t, refuses)
			known := 0
			for _, c := range crashes {
				known += c.check(t, c.kill)
				c.check(t, c.cut)
			}
			if len(crashes) < 20 || known == 0 {
				t.Errorf("%d crashes, %d ids known", len(crashes), known)
			}
		})
	}
}

// crashEverywhere runs producers, two of whom send the same, and notes each moment. Of n runs the backend refuses one for a
// while, of none all if n is 1.
func crashEverywhere(t *testing.T, refuses int) (crashes []crash) {
	disk := memdisk.New()
	s := openOnDisk(t, disk)
	var mu sync.Mutex
	calls := 0
	s.backend.Judge(func(*forward.Run) error {
		mu.Lock()
		defer mu.Unlock()
		if calls++; refuses > 0 && calls%refuses == 0 {
			return errors.New("away")
		}
		return nil
	})
	var acking sync.Mutex
	acked := map[string]bool{}
	random := rand.New(rand.NewPCG(uint64(refuses), 7))
	disk.Fail(func(op int) error {
		acking.Lock()
		defer acking.Unlock()
		c := crash{op: op, kill: disk.Kill(), cut: disk.PowerCut(random.IntN), runs: s.backend.Runs(), acked: map[string]bool{}}
		for id := range acked {
			c.acked[id] = true
		}
		crashes = append(crashes, c)
		return nil
	})
	s.start()
	var producers sync.WaitGroup
	for p := range 4 {
		producers.Go(func() {
			for n := range 8 {
				var words []string
				for i := range 3 {
					words = append(words, fmt.Sprintf("%d-%d-%d data", p/2, n, i))
				}
				b := identified(event.Durable, words...)
				b.Caller = crashCallers[p/2]
				if err := s.Accept(context.Background(), b); err != nil {
					t.Error(err)
					return
				}
				acking.Lock()
				for _, w := range words {
					acked[strings.TrimSuffix(w, " data")] = true
				}
				acking.Unlock()
			}
		})
	}
	producers.Wait()
	disk.Fail(nil)
	s.end()
	return crashes
}

// crashCallers are who is authenticated: an id is one with its caller.
var crashCallers = [][]byte{nil, []byte("token")}

// check opens what a crash left, and returns how many ids are known there.
func (c *crash) check(t *testing.T, disk *memdisk.Memory) (known int) {
	t.Helper()
	s := openOnDisk(t, disk)
	s.recall(c.runs)
	stored := map[string]bool{}
	note := func(data []byte) error {
		id, _, _ := bytes.Cut(data[7:], []byte(`"`))
		stored[string(id)] = true
		return nil
	}
	for _, text := range forwardtest.Events(t, c.runs...) {
		_ = note([]byte(text))
	}
	for p := range int32(3) {
		for after := uint64(0); ; {
			var f spool.Frame
			ok, err := s.spool.Next(p, after, &f)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			after = f.Last()
			if err := consume.Decode(f.Payload, f.Codec, "application/x-ndjson", func(e consume.Event) error { return note(e.Data) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	for p := range 2 {
		namer := s.secret.Namer(crashCallers[p], []byte("p"))
		for n := range 8 {
			for i := range 3 {
				id := fmt.Sprintf("%d-%d-%d", p, n, i)
				switch there := s.ids.Known(namer.Of([]byte(id)), time.Now()); {
				case there && !stored[id]:
					t.Fatalf("operation %d: %s is known and its event is nowhere", c.op, id)
				case !there && stored[id]:
					t.Fatalf("operation %d: %s is stored and not known", c.op, id)
				case !there && c.acked[id]:
					t.Fatalf("operation %d: %s was answered and is forgotten", c.op, id)
				case there:
					known++
				}
			}
		}
	}
	return known
}
