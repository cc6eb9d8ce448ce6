package jetstream_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/jetstream"
)

func TestResumeGoesOnBehindTheLastMessage(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	if last, err := r.backend.Resume(t.Context(), 4); last != 0 || err != nil {
		t.Fatalf("empty lane: %d, %v", last, err)
	}
	r.send(newRun(4, 1, 10))
	r.send(newRun(4, 11, 20))
	r.send(newRun(5, 1, 99))
	r.backend = r.open(1 << 20)
	if last, err := r.backend.Resume(t.Context(), 4); last != 30 || err != nil {
		t.Fatalf("resumed at %d, %v", last, err)
	}
	r.send(newRun(4, 11, 20)) // stored already: confirmed
	r.send(newRun(4, 31, 1))
	if got := len(r.read(jetstream.Query{})); got != 4 {
		t.Errorf("%d messages, want 4", got)
	}
	if err := r.backend.Send(t.Context(), newRun(4, 30, 5)); err == nil {
		t.Error("a run that is stored in part was accepted")
	}
}

// A copy of the store's files while the server runs is what kill -9 leaves.
func TestF1KilledServerHasWhatWasConfirmed(t *testing.T) {
	dir, image := t.TempDir(), filepath.Join(t.TempDir(), "image")
	r := newRig(t, dir, 1<<20)
	for i := range uint64(20) {
		r.send(newRun(int32(i%2), i/2*5+1, 5))
	}
	if err := os.CopyFS(image, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	r.send(newRun(0, 51, 5)) // after the kill

	r = newRig(t, image, 1<<20)
	for partition := range int32(2) {
		if last, err := r.backend.Resume(t.Context(), partition); last != 50 || err != nil {
			t.Errorf("lane %d resumed at %d, %v", partition, last, err)
		}
		r.send(newRun(partition, 46, 5)) // resent: confirmed, not doubled
		r.send(newRun(partition, 51, 5))
	}
	if got := len(r.read(jetstream.Query{})); got != 22 {
		t.Errorf("%d messages, want 22", got)
	}
}

func TestN04StoredRunWithLostAnswerIsConfirmed(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	r.send(newRun(0, 1, 10))
	lost := newRun(0, 11, 10)
	r.put(0, nats.Header{"Nats-Msg-Id": {lost.ID}, "Headgate-Last-Seq": {"20"}}, lost.Payload)
	r.send(lost)
	r.send(newRun(0, 21, 10))
	if got := len(r.read(jetstream.Query{})); got != 3 {
		t.Errorf("%d messages, want 3", got)
	}
}

// The context ends somewhere between publish and answer: whatever came back, sending again until it is confirmed
// stores each run once.
func TestN04ResendingStoresOnce(t *testing.T) {
	const runs = 200
	r := newRig(t, t.TempDir(), 16<<20)
	watcher := r.connect()
	seen, err := watcher.SubscribeSync("headgate.web.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := watcher.Flush(); err != nil {
		t.Fatal(err)
	}
	unanswered := 0
	for i := range uint64(runs) {
		ctx, cancel := context.WithCancel(t.Context())
		var watch sync.WaitGroup
		watch.Go(func() {
			_, _ = seen.NextMsgWithContext(t.Context())
			cancel()
		})
		if err := r.backend.Send(ctx, newRun(0, i*10+1, 10)); err != nil {
			unanswered++
			r.send(newRun(0, i*10+1, 10))
		}
		watch.Wait()
	}
	t.Logf("%d of %d answers lost", unanswered, runs)
	got := r.read(jetstream.Query{})
	if len(got) != runs {
		t.Fatalf("%d messages, want %d", len(got), runs)
	}
	for i, m := range got {
		if m.First != uint64(i)*10+1 {
			t.Fatalf("message %d starts at event %d", i, m.First)
		}
	}
}

func TestSecondWriterStopsTheLane(t *testing.T) {
	own := newRun(0, 11, 10)
	for name, foreign := range map[string]func(r *rig){
		"other run":                  func(r *rig) { r.put(0, nats.Header{"Headgate-Last-Seq": {"20"}}, []byte("x")) },
		"same id with other content": func(r *rig) { r.put(0, nats.Header{"Nats-Msg-Id": {own.ID}, "Headgate-Last-Seq": {"20"}}, []byte("x")) },
		"no headers":                 func(r *rig) { r.put(0, nil, []byte("x")) },
		"other run, then the own one": func(r *rig) {
			r.put(0, nil, nil)
			r.put(0, nats.Header{"Nats-Msg-Id": {own.ID}, "Headgate-Last-Seq": {"20"}}, own.Payload)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, t.TempDir(), 1<<20)
			r.send(newRun(0, 1, 10))
			foreign(r)
			before := len(r.read(jetstream.Query{}))
			for range 2 {
				e := sendError(t, r.backend.Send(t.Context(), own))
				var chain *jetstream.ChainError
				if e.Refused || e.Code != event.BackendUnavailable || e.Reason != "second_writer" || !errors.As(e, &chain) || chain.After != 1 || chain.Found != 2 {
					t.Errorf("%+v", e)
				}
			}
			if r.backend.Err() == nil {
				t.Error("no alarm")
			}
			if _, err := r.backend.Resume(t.Context(), 0); err == nil {
				t.Error("a stopped lane resumes")
			}
			r.send(newRun(1, 1, 10)) // the other lanes go on
			if got := len(r.read(jetstream.Query{})); got != before+1 {
				t.Errorf("%d messages, want %d", got, before+1)
			}
		})
	}
}

func TestForeignLastMessageStopsTheLaneAtStart(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	r.put(0, nil, []byte("not ours"))
	if _, err := r.backend.Resume(t.Context(), 0); sendError(t, err).Reason != "second_writer" {
		t.Error(err)
	}
}

func TestSealMarkerIsReportedAndNotRead(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	r.send(newRun(0, 1, 10))
	r.put(0, nats.Header{"Headgate-Marker": {"seal"}, "Headgate-Last-Seq": {"10"}, "Headgate-Table-Version": {"8"}, "Nats-TTL": {"never"}}, nil)
	for range 2 {
		e := sendError(t, r.backend.Send(t.Context(), newRun(0, 11, 10)))
		var sealed *jetstream.SealedError
		if !errors.As(e, &sealed) || sealed.TableVersion != 8 || e.Reason != "sealed" {
			t.Errorf("%+v", e)
		}
	}
	if err := r.backend.Err(); err != nil {
		t.Errorf("a marker raised the alarm: %v", err)
	}
	late := newRun(0, 11, 10)
	late.TableVersion = 8 // the marker is of an earlier process: what a table as new has routed goes behind it
	r.send(late)
	if got := len(r.read(jetstream.Query{})); got != 2 {
		t.Errorf("%d messages read, want 2", got)
	}
	r.backend = r.open(1 << 20) // a gateway starts with the newest table
	if last, err := r.backend.Resume(t.Context(), 0); last != 20 || err != nil {
		t.Fatalf("resumed at %d, %v", last, err)
	}
	r.send(newRun(0, 21, 10))
}

// Who trims a lane to nothing makes it start its chain again; its numbers go on.
func TestTrimmedLaneGoesOn(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	r.external = true
	r.backend = r.open(1 << 20)
	r.send(newRun(0, 1, 10))
	r.purge()
	run := newRun(0, 11, 10)
	if e := sendError(t, r.backend.Send(t.Context(), run)); e.Reason != "chain" || e.Refused {
		t.Errorf("%+v", e)
	}
	r.send(run)
	r.send(newRun(0, 21, 10))
	if got := r.read(jetstream.Query{}); len(got) != 2 || got[0].First != 11 {
		t.Errorf("read %+v", got)
	}
}

// The server remembers ids for two minutes, also of messages that were purged: its "duplicate" is no proof.
func TestRememberedIDIsNoConfirmation(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	r.send(newRun(0, 1, 10))
	r.purge()
	r.backend = r.open(1 << 20)
	if e := sendError(t, r.backend.Send(t.Context(), newRun(0, 1, 10))); e.Reason != "chain" || e.Refused {
		t.Errorf("%+v", e)
	}
}

// F13, N02: a lane that ends earlier than it did, or not at all, since the stream was deleted or is of an older state, says what
// is lost, and takes that and what comes behind it.
func TestF13StreamThatEndsEarlierSaysWhatIsLost(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, dir, 1<<20)
	for i := range uint64(3) {
		r.send(newRun(0, i*10+1, 10))
	}
	lost := func(err error, stored uint64) {
		t.Helper()
		if lost, ok := errors.AsType[*forward.LostError](err); !ok || lost.Stored != stored || lost.Confirmed != 30 {
			t.Errorf("%v, want what is lost behind %d", err, stored)
		}
	}
	remove := func() {
		t.Helper()
		// The server moves what it removes to a folder that it empties behind its answer, and leaves it where it is, to be found by
		// the next stream of that name, while the one removed before is still there.
		for len(hidden(t, dir)) > 0 {
			<-time.After(time.Millisecond)
		}
		if err := r.side.DeleteStream(t.Context(), "HEADGATE_web"); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	r.open(1 << 20)
	r.put(0, nats.Header{"Headgate-Last-Seq": {"10"}}, []byte("restored"))
	lost(r.backend.Send(t.Context(), newRun(0, 31, 10)), 10)
	r.send(newRun(0, 11, 20))
	remove() // and nobody makes it again
	if e := sendError(t, r.backend.Send(t.Context(), newRun(0, 31, 10))); e.Reason != "no_stream" {
		t.Errorf("%+v", e)
	}
	lost(r.backend.Send(t.Context(), newRun(0, 31, 10)), 0)
	r.send(newRun(0, 1, 30))
	r.send(newRun(0, 31, 10))
	if err := r.backend.Check(t.Context(), 0, 40); err != nil {
		t.Error(err)
	}
	remove()
	if lost, ok := errors.AsType[*forward.LostError](r.backend.Check(t.Context(), 0, 0)); !ok || lost.Stored != 0 || lost.Confirmed != 40 {
		t.Error(lost)
	}
	r.send(newRun(0, 1, 40))
	r.backend = r.open(1 << 20)
	if lost, ok := errors.AsType[*forward.LostError](r.backend.Check(t.Context(), 0, 55)); !ok || lost.Stored != 40 || lost.Confirmed != 55 {
		t.Error(lost)
	}
}

// hidden returns the folders of streams that are on their way out.
func hidden(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", ".*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (r *rig) purge(opts ...js.StreamPurgeOpt) {
	r.t.Helper()
	stream, err := r.side.Stream(r.t.Context(), "HEADGATE_web")
	if err != nil {
		r.t.Fatal(err)
	}
	if err := stream.Purge(r.t.Context(), opts...); err != nil {
		r.t.Fatal(err)
	}
}

func TestF9FullStreamRecoversWithSpace(t *testing.T) {
	r := newRig(t, t.TempDir(), 64<<10)
	next := uint64(1)
	run := newRun(0, next, 1000)
	var err error
	for err == nil {
		if err = r.backend.Send(t.Context(), run); err == nil {
			next += 1000
			run = newRun(0, next, 1000)
		}
	}
	stored := len(r.read(jetstream.Query{}))
	for range 3 {
		e := sendError(t, r.backend.Send(t.Context(), run))
		if e.Refused || e.Code != event.BackendFull || e.Reason != "full" || e.After == 0 {
			t.Fatalf("%+v", e)
		}
	}
	if got := len(r.read(jetstream.Query{})); got != stored {
		t.Errorf("full stream changed from %d to %d messages", stored, got)
	}
	r.purge(js.WithPurgeSubject(jetstream.Subject("web", 0, gateway)), js.WithPurgeKeep(1))
	r.send(run)
	got := r.read(jetstream.Query{})
	if len(got) != 2 || got[1].First != next || got[0].Last+1 != next {
		t.Errorf("after the purge: %d messages", len(got))
	}
}

func TestTooLargeRunIsRefused(t *testing.T) {
	r := newRig(t, t.TempDir(), 64<<20)
	run := newRun(0, 1, 1)
	run.Payload = make([]byte, 9<<20)
	e := sendError(t, r.backend.Send(t.Context(), run))
	if !e.Refused || e.Code != event.EventTooLarge || e.Reason != "too_large" {
		t.Errorf("%+v", e)
	}
	// The largest run is stored, and found again when its answer is lost.
	for i := range run.Payload {
		run.Payload[i] = byte(rand.Uint32())
	}
	run.Payload = run.Payload[:r.backend.MaxRun()]
	r.put(0, nats.Header{"Nats-Msg-Id": {run.ID}, "Headgate-Last-Seq": {"1"}}, run.Payload)
	fresh := r.open(64 << 20)
	if last, err := fresh.Resume(t.Context(), 0); last != 1 || err != nil {
		t.Errorf("resumed at %d, %v", last, err)
	}
	r.send(run)
	if got := r.read(jetstream.Query{}); len(got) != 1 || !bytes.Equal(got[0].Payload, run.Payload) {
		t.Errorf("%d messages", len(got))
	}
}

func TestN03LanesAtTheSameTime(t *testing.T) {
	const lanes, runs = 16, 50
	r := newRig(t, t.TempDir(), 64<<20)
	var senders sync.WaitGroup
	for partition := range int32(lanes) {
		senders.Go(func() {
			for i := range uint64(runs) {
				if err := r.backend.Send(t.Context(), newRun(partition, i*10+1, 10)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	senders.Wait()
	next := map[int32]uint64{}
	all := r.read(jetstream.Query{})
	for _, m := range all {
		if m.First != next[m.Partition]+1 {
			t.Errorf("lane %d: event %d follows %d", m.Partition, m.First, next[m.Partition])
		}
		next[m.Partition] = m.Last
	}
	if len(all) != lanes*runs {
		t.Errorf("%d messages, want %d", len(all), lanes*runs)
	}
}

// One publish takes one fsync: the figure is the disk's as much as ours.
func BenchmarkSend16Lanes16KiB(b *testing.B) {
	const lanes = 16
	r := newRig(b, b.TempDir(), 1<<30)
	payload := make([]byte, 16<<10)
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	b.ResetTimer()
	var senders sync.WaitGroup
	for partition := range int32(lanes) {
		senders.Go(func() {
			run := newRun(partition, 1, 50)
			run.Payload = payload
			for i := int(partition); i < b.N; i += lanes {
				if err := r.backend.Send(b.Context(), run); err != nil {
					b.Error(err)
					return
				}
				*run = forward.Run{
					Stream: "web", Partition: partition, First: run.Last + 1, Last: run.Last + 50, Events: 50, Frames: 1,
					ContentType: run.ContentType, ContentEncoding: "zstd", Payload: payload,
					ID: newRun(partition, run.Last+1, 0).ID,
				}
			}
		})
	}
	senders.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "publishes/s")
}
