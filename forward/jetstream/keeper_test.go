package jetstream_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/jetstream"
)

func (r *rig) keeper(cfg jetstream.KeeperConfig) *jetstream.Keeper {
	r.t.Helper()
	k, err := jetstream.NewKeeper(r.connect(), cfg, quiet)
	if err != nil {
		r.t.Fatal(err)
	}
	return k
}

func look(t *testing.T, k *jetstream.Keeper) {
	t.Helper()
	if err := k.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// fillUp sends runs of a lane, from number next on, until one finds the stream full.
func (r *rig) fillUp(partition int32, next uint64) uint64 {
	r.t.Helper()
	for {
		run := newRun(partition, next, 1000)
		err := r.backend.Send(r.t.Context(), run)
		if err != nil {
			if e, ok := errors.AsType[*forward.SendError](err); !ok || e.Reason != "full" {
				r.t.Fatal(err)
			}
			return next
		}
		next = run.Last + 1
	}
}

func (r *rig) state(stream string) jetstream.State {
	r.t.Helper()
	state, err := r.reader.State(r.t.Context(), stream)
	if err != nil {
		r.t.Fatal(err)
	}
	return state
}

// TestFullStreamTakesWhatOthersLeave: it grows again and again, all limits together stay within the total, and a stream
// made when it can grow no more has room.
func TestFullStreamTakesWhatOthersLeave(t *testing.T) {
	const total = 8 << 20
	r := newRig(t, t.TempDir(), total/40)
	k := r.keeper(jetstream.KeeperConfig{MaxBytes: total})
	next := uint64(1)
	for before := int64(0); ; {
		look(t, k)
		if now := r.state("web").MaxBytes; now <= before {
			break
		} else {
			before = now
		}
		next = r.fillUp(0, next)
	}
	if got := r.state("web").MaxBytes; got < total/2 || got > total {
		t.Errorf("it came to hold %d of %d", got, total)
	}
	for i := range 40 {
		name := fmt.Sprintf("s%d", i)
		maxBytes, err := k.Grant(t.Context(), name, 1)
		if err != nil {
			t.Fatal(err)
		}
		b, err := jetstream.Open(t.Context(), r.conn, jetstream.Config{Stream: name, Gateway: gateway, MaxBytes: maxBytes}, quiet)
		if err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
		run := newRun(0, 1, 1000)
		run.Stream = name
		if err := b.Send(t.Context(), run); err != nil {
			t.Errorf("the full stream blocks stream %d, which may hold %d: %v", i, maxBytes, err)
		}
	}
	sum := r.state("web").MaxBytes
	for i := range 40 {
		sum += r.state(fmt.Sprintf("s%d", i)).MaxBytes
	}
	if sum > total {
		t.Errorf("limits of %d in all, more than %d", sum, total)
	}
}

// TestLoweredTotalDropsNothing: streams that hold more than their share refuse what is new.
func TestLoweredTotalDropsNothing(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	next := r.fillUp(0, 1)
	before := r.state("web").Messages
	look(t, r.keeper(jetstream.KeeperConfig{MaxBytes: 512 << 10}))
	if got := r.state("web"); got.Messages != before || got.MaxBytes > 512<<10 {
		t.Errorf("%+v, had %d messages", got, before)
	}
	if e := sendError(t, r.backend.Send(t.Context(), newRun(0, next, 1000))); e.Reason != "full" {
		t.Errorf("%+v", e)
	}
}

// TestAgePurgesBelowTheLastOfEachLane, also of a lane that is idle, and all lanes go on after it.
func TestAgePurgesBelowTheLastOfEachLane(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	r.send(newRun(7, 1, 1)) // idle: its only message
	for i := range uint64(5) {
		r.send(newRun(1, 1+i, 1))
		r.send(newRun(2, 1+i, 1))
	}
	<-time.After(50 * time.Millisecond) // the age of what follows differs
	r.send(newRun(1, 6, 1))
	stored := r.read(jetstream.Query{})
	age := time.Since(stored[len(stored)-2].Time) - time.Millisecond
	look(t, r.keeper(jetstream.KeeperConfig{MaxAge: age}))
	left := map[string]bool{}
	for _, m := range r.read(jetstream.Query{}) {
		left[fmt.Sprintf("%d/%d", m.Partition, m.First)] = true
	}
	if len(left) != 3 || !left["7/1"] || !left["2/5"] || !left["1/6"] {
		t.Errorf("left %v", left)
	}
	r.backend = r.open(1 << 20)
	for partition, next := range map[int32]uint64{1: 7, 2: 6, 7: 2} {
		if last, err := r.backend.Resume(t.Context(), partition); err != nil || last != next-1 {
			t.Errorf("lane %d goes on behind %d, %v", partition, last, err)
		}
		r.send(newRun(partition, next, 1))
	}
}

// TestOldestMakesRoom: with full: oldest a full stream takes new runs again, and an idle lane keeps its end.
func TestOldestMakesRoom(t *testing.T) {
	r := newRig(t, t.TempDir(), 256<<10)
	r.send(newRun(7, 1, 1))
	k := r.keeper(jetstream.KeeperConfig{Oldest: true})
	next := uint64(1)
	for range 5 {
		next = r.fillUp(1, next)
		look(t, k)
	}
	got := r.read(jetstream.Query{})
	if got[0].Partition != 7 {
		t.Errorf("the idle lane lost its end: first is %d/%d", got[0].Partition, got[0].First)
	}
	for i := 2; i < len(got); i++ {
		if got[i].First != got[i-1].Last+1 {
			t.Errorf("a hole before %d", got[i].First)
		}
	}
	if got[1].First == 1 || len(got) < 10 {
		t.Errorf("%d runs left, the first with %d", len(got), got[1].First)
	}
}

func TestPurgeByCountAndAge(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	k := r.keeper(jetstream.KeeperConfig{})
	for i := range uint64(10) {
		r.send(newRun(int32(i%2), 1+i/2, 1))
	}
	for _, c := range []struct {
		purge jetstream.Purge
		gone  uint64
		left  string
	}{
		{jetstream.Purge{}, 0, "[1 2 3 4 5 6 7 8 9 10]"},
		{jetstream.Purge{Count: true, Keep: 20}, 0, "[1 2 3 4 5 6 7 8 9 10]"},
		{jetstream.Purge{Count: true, Keep: 7}, 3, "[4 5 6 7 8 9 10]"},
		{jetstream.Purge{Before: time.Now().Add(-time.Hour)}, 0, "[4 5 6 7 8 9 10]"},
		{jetstream.Purge{Before: time.Now().Add(time.Hour)}, 5, "[9 10]"},
		{jetstream.Purge{Count: true}, 0, "[9 10]"},
	} {
		gone, err := k.Purge(t.Context(), "web", 1, c.purge)
		if left := seqs(r.read(jetstream.Query{})); err != nil || gone != c.gone || left != c.left {
			t.Errorf("%+v: %d gone, left %s, %v; want %d, %s", c.purge, gone, left, err, c.gone, c.left)
		}
	}
	if _, err := k.Purge(t.Context(), "nobody", 1, jetstream.Purge{}); !errors.Is(err, jetstream.ErrNoStream) {
		t.Errorf("unknown stream: %v", err)
	}
}

func TestKeeperEndsWithItsContext(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.keeper(jetstream.KeeperConfig{MaxBytes: 1 << 30, MaxAge: time.Hour, Oldest: true}).Run(ctx)
}

// TestFullStreamWakesTheKeeper: a run that finds the stream full goes in without anybody's help.
func TestFullStreamWakesTheKeeper(t *testing.T) {
	const total = 8 << 20
	r := newRig(t, t.TempDir(), total/40)
	k := r.keeper(jetstream.KeeperConfig{MaxBytes: total, Every: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); k.Run(ctx) }()
	defer func() { cancel(); <-done }()
	cfg := jetstream.Config{Stream: "web", Gateway: gateway, OnFull: k.Full}
	b, err := jetstream.Open(t.Context(), r.conn, cfg, quiet)
	if err != nil {
		t.Fatal(err)
	}
	for next := uint64(1); r.state("web").Bytes < total/4; {
		run := newRun(0, next, 1000)
		if b.Send(t.Context(), run) == nil { // else again
			next = run.Last + 1
		}
	}
}
