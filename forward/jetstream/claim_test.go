package jetstream_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headgate-io/headgate/forward/jetstream"
)

// late is what an earlier process has sent behind a lane's message and the server gets only now.
func (r *rig) late(partition int32, behind string, first, last string) error {
	m := &nats.Msg{Subject: jetstream.Subject("web", partition, gateway), Data: []byte("late"), Header: nats.Header{
		"Headgate-First-Seq": {first}, "Headgate-Last-Seq": {last},
	}}
	if behind != "" {
		m.Header.Set("Nats-Expected-Last-Subject-Sequence", behind)
	}
	_, err := r.side.PublishMsg(r.t.Context(), m)
	return err
}

// On a server that outlives its gateway, nothing that an earlier process has sent comes between the new one's question where the
// lane ends and its first run.
func TestAClaimedLaneRefusesWhatComesLate(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	r.external = true
	r.backend = r.open(1 << 20)
	r.send(newRun(0, 1, 10)) // message 1 is the claim
	for _, p := range []int32{0, 1} {
		r.backend = r.open(1 << 20)
		if last, err := r.backend.Resume(t.Context(), p); err != nil || last != uint64(10*(1-p)) {
			t.Fatalf("resumed at %d, %v", last, err)
		}
	}
	if err := r.late(0, "2", "11", "12"); err == nil {
		t.Error("a late publish is stored")
	}
	if err := r.late(1, "0", "1", "2"); err == nil {
		t.Error("a late publish is stored on a lane that was empty")
	}
	r.send(newRun(1, 1, 5))
	r.backend = r.open(1 << 20)
	if last, err := r.backend.Resume(t.Context(), 0); err != nil || last != 10 {
		t.Fatalf("resumed at %d, %v", last, err)
	}
	r.send(newRun(0, 11, 1))
	if _, err := r.backend.Seal(t.Context(), 0, 8); err != nil {
		t.Fatal(err)
	}
	r.send(newRun(0, 12, 1))
	if got := r.read(jetstream.Query{}); len(got) != 4 || r.backend.Err() != nil {
		t.Errorf("%d runs, %v", len(got), r.backend.Err())
	}
}

// A gateway that starts again and again leaves one claim on each lane, and loses nothing else: neither runs, nor seals, nor numbers.
func TestClaimsOfEarlierStartsAreRemoved(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	r.external = true
	held := func() (messages uint64) {
		t.Helper()
		stream, err := r.side.Stream(t.Context(), "HEADGATE_web")
		if err != nil {
			t.Fatal(err)
		}
		return stream.CachedInfo().State.Msgs
	}
	start := func(times int) {
		t.Helper()
		for range times {
			r.backend = r.open(1 << 20)
			for p, want := range []uint64{10, 0, 3} {
				if last, err := r.backend.Resume(t.Context(), int32(p)); err != nil || last != want {
					t.Fatalf("partition %d resumed at %d, %v", p, last, err)
				}
			}
		}
	}
	r.backend = r.open(1 << 20)
	r.send(newRun(0, 1, 10))
	r.send(newRun(2, 1, 3))
	if _, err := r.backend.Seal(t.Context(), 2, 8); err != nil {
		t.Fatal(err)
	}
	before := held() // two claims, two runs, a seal
	start(1)
	if n := held(); n != before+3 {
		t.Errorf("%d messages after a start, %d before", n, before)
	}
	start(5)
	if n := held(); n != before+3 {
		t.Errorf("%d messages after more starts, %d before", n, before)
	}
	r.send(newRun(0, 11, 1))
	r.send(newRun(1, 1, 1))
	if got := r.read(jetstream.Query{}); len(got) != 4 || r.backend.Err() != nil {
		t.Errorf("%d runs, %v", len(got), r.backend.Err())
	}
}

// What a process that was only stopped sends behind its claim, and what expects the message before that, is refused also when the
// claim is not there any more.
func TestARemovedClaimIsRefusedLikeOneThatIsThere(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	r.external = true
	r.backend = r.open(1 << 20)
	r.send(newRun(0, 1, 10)) // message 2 is the run
	stopped := r.open(1 << 20)
	if last, err := stopped.Resume(t.Context(), 0); err != nil || last != 10 { // message 3
		t.Fatal(last, err)
	}
	r.backend = r.open(1 << 20)
	if last, err := r.backend.Resume(t.Context(), 0); err != nil || last != 10 {
		t.Fatal(last, err)
	}
	for _, behind := range []string{"2", "3"} {
		if err := r.late(0, behind, "11", "12"); err == nil {
			t.Errorf("what comes behind message %s is stored", behind)
		}
	}
	for range 4 { // the first answers may leave it open
		_ = stopped.Send(t.Context(), newRun(0, 11, 10))
	}
	var chain *jetstream.ChainError
	if !errors.As(stopped.Err(), &chain) || chain.Found != 4 {
		t.Errorf("alarm %v", stopped.Err())
	}
	r.send(newRun(0, 11, 3))
	if got := r.read(jetstream.Query{}); len(got) != 2 || r.backend.Err() != nil {
		t.Errorf("%d runs, %v", len(got), r.backend.Err())
	}
}

// A process that was only stopped, and goes on when another one has taken its lanes over, sends nothing more.
func TestAProcessWhoseLaneIsClaimedStops(t *testing.T) {
	for name, send := range map[string]func(r *rig) error{
		"run":  func(r *rig) error { return r.backend.Send(r.t.Context(), newRun(0, 11, 10)) },
		"seal": func(r *rig) error { _, err := r.backend.Seal(r.t.Context(), 0, 8); return err },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, t.TempDir(), 1<<20)
			r.external = true
			r.backend = r.open(1 << 20)
			r.send(newRun(0, 1, 10))
			second := r.open(1 << 20)
			if _, err := second.Resume(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			err := send(r)
			for range 3 { // the first answers may leave it open
				if r.backend.Err() == nil {
					err = send(r)
				}
			}
			var chain *jetstream.ChainError
			if !errors.As(err, &chain) || r.backend.Err() == nil {
				t.Errorf("%v, alarm %v", err, r.backend.Err())
			}
			if err := second.Send(t.Context(), newRun(0, 11, 3)); err != nil {
				t.Error(err)
			}
			if got := len(r.read(jetstream.Query{})); got != 2 {
				t.Errorf("%d runs, want 2", got)
			}
		})
	}
}

// A stream that is full says where its lanes end, so that events may go to the spool, and is claimed when it has room.
func TestAFullStreamIsClaimedLater(t *testing.T) {
	r := newRig(t, t.TempDir(), 4<<10)
	r.external = true
	r.backend = r.open(4 << 10)
	full := false
	for n := uint64(1); !full; n += 10 {
		full = r.backend.Send(t.Context(), newRun(0, n, 10)) != nil
	}
	for r.late(9, "", "1", "1") == nil { // until not even a marker has room
	}
	var said []bool // that it is full
	cfg := jetstream.Config{Stream: "web", Gateway: gateway, Timeout: time.Minute, OnFull: func(_ string, bytes int64) { said = append(said, bytes > 0) }}
	var err error
	if r.backend, err = jetstream.Open(t.Context(), r.conn, cfg, quiet); err != nil {
		t.Fatal(err)
	}
	if _, err := r.backend.Resume(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if e := sendError(t, r.backend.Send(t.Context(), newRun(3, 1, 1))); e.Reason != "full" {
		t.Errorf("%+v", e)
	}
	if slices.Contains(said, false) || len(said) == 0 {
		t.Errorf("said to be full: %v", said)
	}
	r.purge()
	r.send(newRun(3, 1, 1))
	if said[len(said)-1] {
		t.Error("nobody is told that it takes messages again")
	}
	if err := r.late(3, "0", "1", "2"); err == nil {
		t.Error("a late publish is stored")
	}
}

// What a late publish took of numbers that were given meanwhile, since a full lane could not be claimed, stops the lane.
func TestNumbersThatWereTakenMeanwhileStopTheLane(t *testing.T) {
	r := newRig(t, t.TempDir(), 4<<10)
	r.external = true
	r.backend = r.open(4 << 10)
	for r.late(9, "", "1", "1") == nil {
	}
	if last, err := r.backend.Resume(t.Context(), 3); last != 0 || err != nil {
		t.Fatal(last, err)
	}
	r.purge()
	if err := r.late(3, "0", "1", "2"); err != nil {
		t.Fatal(err)
	}
	if e := sendError(t, r.backend.Send(t.Context(), newRun(3, 1, 1))); e.Reason != "second_writer" {
		t.Errorf("%+v", e)
	}
}

// A lane that may have lost its end to a damage goes on above what it can have lost, also when a marker lies behind the damage, and its
// marks are of events that are there.
func TestASealedLaneThatLostItsEndGoesOnAbove(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	r.send(newRun(0, 1, 10))
	damaged := func(lost uint64) *jetstream.Backend {
		t.Helper()
		cfg := jetstream.Config{Stream: "web", Gateway: gateway, MaxBytes: 1 << 20, Timeout: time.Minute, Own: true, Lost: lost}
		b, err := jetstream.Open(t.Context(), r.conn, cfg, quiet)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := damaged(2) // message 2 is lost: who knows what it was
	for p, want := range []uint64{10, 0} {
		if last, err := b.Seal(t.Context(), int32(p), 8); last != want || err != nil {
			t.Fatalf("sealed at %d, %v; want %d", last, err, want)
		}
	}
	for range 2 { // the damage is behind the marker, or unknown
		for p, want := range []uint64{10, 0} {
			b = damaged(0)
			last, err := b.Resume(t.Context(), int32(p))
			if err != nil || last < 1<<32 {
				t.Errorf("resumed at %d, %v", last, err)
			}
			if mark, err := b.Seal(t.Context(), int32(p), 9); mark != want || err != nil {
				t.Errorf("sealed at %d, %v; want %d", mark, err, want)
			}
		}
	}
}
