package window

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/headgate-io/headgate/event"
)

// records is a log in memory; what is behind flushed is lost in a crash.
type records struct {
	all     [][]byte
	flushed int
}

func (r *records) Append(record []byte) { r.all = append(r.all, slices.Clone(record)) }
func (r *records) Flush()               { r.flushed = len(r.all) }

// next is a set of a process that finds the log, replaced by a snapshot or not.
func (r *records) next(t rapid.TB, s *Set, snapshot bool, now time.Time) *Set {
	if snapshot {
		r.all = nil
		if err := s.Snapshot(func(record []byte) error { r.Append(record); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	after := RecoverSet(s.limit, s.age, now)
	for _, record := range r.all {
		after.Restore(record, now)
	}
	after.Keep(r, true, now)
	return after
}

// P02, F46: random work over restarts, a log that is replaced by snapshots or not: a set knows what was finished and not
// forgotten, nothing else; not what was pending, failed, or was freed. It says how far back it knows all of it.
func TestF46SetOverRestarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, log, now := rapid.SampledFrom([]int{1, 2, 3, 7, 20, 100}).Draw(t, "limit"), &records{}, epoch
		s := RecoverSet(limit, time.Minute, now)
		s.Keep(log, true, now)
		finished := map[ID]time.Time{} // and not freed
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1, 2:
				work(t, s, finished, now)
			case 3:
				id := ID{uint64(rapid.IntRange(0, 60).Draw(t, "freed")), 1}
				if _, ok := finished[id]; ok {
					s.Free(id)
					delete(finished, id)
				}
			case 4, 5:
				before := s.State(now)
				s = log.next(t, s, rapid.Bool().Draw(t, "snapshot"), now)
				after := s.State(now)
				// Without room for all, others may be forgotten than were: those of whoever has most now.
				if after.Pending != 0 || limit == 100 && len(log.all) > 0 && (after.Finished != before.Finished || after.Reach < before.Reach-2*time.Second) {
					t.Fatalf("%+v, before the restart %+v", after, before)
				}
			}
			state := s.State(now)
			for id, at := range finished {
				known := s.Known(id, now)
				if !known && now.Sub(at) < state.Reach {
					t.Fatalf("%v, %v old, is forgotten, though the window reaches %v", id, now.Sub(at), state.Reach)
				}
				if known && now.Sub(at) > time.Minute+3*time.Second {
					t.Fatalf("%v is known after %v", id, now.Sub(at))
				}
			}
			for n := range uint64(61) {
				if _, ok := finished[ID{n, 1}]; !ok && s.Known(ID{n, 1}, now) {
					t.Fatalf("%d is known, and was not finished", n)
				}
			}
		}
	})
}

// work claims some ids and settles most of them, some with a fate.
func work(t *rapid.T, s *Set, finished map[ID]time.Time, now time.Time) {
	var refs []Ref
	for i, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 60), 1, 5, rapid.ID[int]).Draw(t, "ids") {
		refs = append(refs, Ref{ID: ID{uint64(n), 1}, Place: int32(i)})
	}
	c, ok := s.Claim(refs, Owner(rapid.IntRange(1, 3).Draw(t, "owner")), now)
	if !ok {
		return
	}
	var fates []Fate
	var whole *event.Problem
	switch rapid.IntRange(0, 4).Draw(t, "end") {
	case 0:
		whole = event.Problemf(event.Draining, "stopped")
	case 1:
		fates = []Fate{{Place: refs[0].Place, Verdict: event.Rejected}}
	}
	for _, r := range refs {
		if r.Standing == Fresh && whole == nil && (fates == nil || r.Place != fates[0].Place) {
			finished[r.ID] = now
		}
	}
	c.Settle(fates, whole, now)
}

// An id whose event is given up while its claim is still pending is free when that ends, and again at the next start.
func TestFreedWhilePending(t *testing.T) {
	log, id, other := &records{}, ID{1, 2}, ID{2, 2}
	s := RecoverSet(10, time.Hour, epoch)
	s.Keep(log, true, epoch)
	c, _ := s.Claim([]Ref{{ID: id}, {ID: other, Place: 1}}, 1, epoch)
	s.Free(id)
	c.Settle(nil, nil, epoch)
	if s.Known(id, epoch) || !s.Known(other, epoch) || len(s.doomed) != 0 {
		t.Errorf("known: %v, the other %v; doomed %v", s.Known(id, epoch), s.Known(other, epoch), s.doomed)
	}
	if after := log.next(t, s, false, epoch); after.Known(id, epoch) || !after.Known(other, epoch) {
		t.Error("after a restart it is not as it was")
	}
}

// What is missing in the log is said: the window reaches back no further than its start.
func TestReachBehindDamage(t *testing.T) {
	log := &records{}
	s := RecoverSet(10, time.Hour, epoch)
	s.Keep(log, true, epoch)
	now := epoch.Add(10 * time.Minute)
	after := RecoverSet(10, time.Hour, now)
	for _, record := range log.all {
		after.Restore(record, now)
	}
	if after.Keep(log, false, now); after.State(now).Reach != 0 {
		t.Errorf("%+v", after.State(now))
	}
	if now = now.Add(time.Minute); after.State(now).Reach < 58*time.Second {
		t.Errorf("%+v", after.State(now))
	}
}

// F26: a clock that is set back or forward between two processes neither loses what was finished just now nor keeps it for good.
func TestF26ClockSetBetweenProcesses(t *testing.T) {
	for _, jump := range []time.Duration{-24 * time.Hour, -time.Minute, time.Minute} {
		log := &records{}
		s := RecoverSet(10, time.Hour, epoch)
		s.Keep(log, true, epoch)
		id := ID{1, 2}
		c, _ := s.Claim([]Ref{{ID: id}}, 1, epoch)
		c.Settle(nil, nil, epoch)
		now := epoch.Add(jump)
		after := log.next(t, s, false, now)
		if !after.Known(id, now) {
			t.Errorf("jump of %v: forgotten", jump)
		}
		if now = now.Add(time.Hour + 3*time.Second); after.Known(id, now) {
			t.Errorf("jump of %v: never forgotten", jump)
		}
	}
}

// A07: answers over restarts, those whose events are safe and no others, the same bytes, for their keys and content.
func TestA07AnswersOverRestarts(t *testing.T) {
	log, now := &records{}, epoch
	k := RecoverKeys(50, time.Minute, now)
	k.Keep(log, true, now)
	long := make([]byte, 5000)
	for i := range long {
		long[i] = byte(i / 100)
	}
	answers := []Answer{{200, "application/json", "", []byte("{}")}, {207, "application/json", "3", long}, {200, "application/json", "", []byte("lost")}}
	ask := func(k *Keys, n int) (*Run, int) {
		return k.Begin(Request{Key: Sums([]byte{byte(n)}), Content: Sums([]byte("content")), Owner: Owner(n)}, now)
	}
	for i, a := range answers {
		r, _ := ask(k, i)
		if i == 1 {
			r.Finish(a, now) // safe only later
		}
		if i < 2 {
			r.Safe()
		}
		if i != 1 {
			r.Finish(a, now)
		}
	}
	ask(k, 3) // runs when the process ends
	for _, snapshot := range []bool{false, true, false} {
		now = now.Add(10 * time.Second)
		after := RecoverKeys(50, time.Minute, now)
		if snapshot {
			log.all = nil
			_ = k.Snapshot(func(record []byte) error { log.Append(record); return nil })
		}
		for _, record := range log.all {
			after.Restore(record, now)
		}
		after.Keep(log, true, now)
		for i, a := range answers[:2] {
			r, standing := ask(after, i)
			if standing != Finished {
				t.Fatalf("answer %d stands %d", i, standing)
			}
			got, ok, err := r.Wait(t.Context())
			if !ok || err != nil || got.Status != a.Status || string(got.Doc) != string(a.Doc) || got.Rejected != a.Rejected || got.MediaType != a.MediaType {
				t.Errorf("answer %d: %+v %v %v", i, got, ok, err)
			}
		}
		if _, standing := after.Begin(Request{Key: Sums([]byte{0}), Content: Sums([]byte("other"))}, now); standing != Different {
			t.Errorf("other content stands %d", standing)
		}
		for _, n := range []int{2, 3} {
			r, standing := ask(after, n)
			if standing != NewRun {
				t.Errorf("key %d stands %d, want it free", n, standing)
			}
			r.Forget()
		}
		if st := after.State(now); st.Finished != 2 || st.Reach < now.Sub(epoch)-4*time.Second || st.Reach > now.Sub(epoch) {
			t.Errorf("%+v after %v", st, now.Sub(epoch))
		}
		k = after
	}
	now = now.Add(time.Minute)
	if after := RecoverKeys(50, time.Minute, now); true {
		for _, record := range log.all {
			after.Restore(record, now)
		}
		if st := after.State(now); st.Finished != 0 {
			t.Errorf("old answers are still there: %+v", st)
		}
	}
}

// More answers than a window has room for are read back as they would be remembered: the last ones.
func TestAnswersOverRestartsKeepWithinBounds(t *testing.T) {
	log, now := &records{}, epoch
	k := RecoverKeys(10, time.Minute, now)
	k.Keep(log, true, now)
	for n := range 25 {
		r, _ := k.Begin(Request{Key: Sums([]byte{byte(n)}), Owner: 1}, now)
		r.Safe()
		r.Finish(Answer{Status: 200, Doc: []byte("{}")}, now)
		now = now.Add(time.Second)
	}
	after := RecoverKeys(10, time.Minute, now)
	for _, record := range log.all {
		after.Restore(record, now)
	}
	after.Keep(log, true, now)
	if a, b := after.State(now), k.State(now); a.Finished != 10 || b.Reach-a.Reach > 2*time.Second || a.Reach > b.Reach {
		t.Errorf("%+v, before the restart %+v", a, b)
	}
	for n := range 25 {
		if _, standing := after.Begin(Request{Key: Sums([]byte{byte(n)}), Owner: 1}, now); (standing == Finished) != (n >= 15) {
			t.Errorf("key %d stands %d", n, standing)
		}
	}
}

// A million ids, as they are read back at a start. It is for a quiet machine: HEADGATE_MILLION=1 go test -run Million ./internal/window
func TestMillionIDsAreReadBackQuickly(t *testing.T) {
	if os.Getenv("HEADGATE_MILLION") == "" {
		t.Skip("set HEADGATE_MILLION=1")
	}
	log, now := &records{}, time.Now()
	s := RecoverSet(1_000_000, time.Hour, now)
	s.Keep(log, true, now)
	for n := 0; n < 1_000_000; n += 500 {
		refs := make([]Ref, 500)
		for i := range refs {
			refs[i] = Ref{ID: Secret{1}.Namer(nil, nil).Of(fmt.Append(nil, n+i)), Place: int32(i)}
		}
		c, _ := s.Claim(refs, Owner(n%7), now)
		c.Settle(nil, nil, now)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	again := RecoverSet(1_000_000, time.Hour, now)
	for _, record := range log.all {
		again.Restore(record, now)
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	t.Logf("%d ids in %v, %d MiB allocated", again.State(now).Finished, took, (after.TotalAlloc-before.TotalAlloc)>>20)
	if again.State(now).Finished != 1_000_000 || took > time.Second || after.TotalAlloc-before.TotalAlloc > 64<<20 {
		t.Error("too slow or too large")
	}
}
