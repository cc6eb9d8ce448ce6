package window

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/headgate-io/headgate/event"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// model is what a Set ought to be: lists, searched from end to end.
type model struct {
	limit    int
	age      time.Duration
	pending  map[ID]*modelClaim
	finished []modelID // the oldest first
}

type modelID struct {
	id ID
	at time.Time
}

type modelClaim struct {
	claim *Claim
	ids   []ID
}

func (m *model) expire(now time.Time) {
	for len(m.finished) > 0 && now.Sub(m.finished[0].at) > m.age+time.Second {
		m.finished = m.finished[1:]
	}
}

func (m *model) known(id ID) bool {
	return slices.ContainsFunc(m.finished, func(f modelID) bool { return f.id == id })
}

// TestSetIsExact compares a set with a plain model under random work: no id is forgotten before its time, but for the
// oldest finished ones when there is no room; none is remembered that failed.
func TestSetIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 40).Draw(t, "limit")
		m := &model{limit: limit, age: time.Minute, pending: map[ID]*modelClaim{}}
		s, now := NewSet(limit, m.age, epoch), epoch
		var open []*modelClaim
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "seconds")) * time.Second)
			m.expire(now)
			if len(open) > 0 && rapid.Bool().Draw(t, "settle") {
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				m.settle(t, open[i], now)
				open = slices.Delete(open, i, i+1)
			} else if c := m.claim(t, s, now); c != nil {
				open = append(open, c)
			}
			if got := s.State(now); got.Pending != len(m.pending) || got.Finished != len(m.finished) || len(s.claims)-len(s.numbers) != len(open) {
				t.Fatalf("%+v, want %d pending, %d finished", got, len(m.pending), len(m.finished))
			}
		}
	})
}

func (m *model) claim(t *rapid.T, s *Set, now time.Time) *modelClaim {
	var refs []Ref
	for i, n := range rapid.SliceOfN(rapid.IntRange(0, 60), 1, 30).Draw(t, "ids") {
		refs = append(refs, Ref{ID: ID{uint64(n), uint64(n % 5)}, Place: int32(2 * i)}) // many fall together
	}
	before, finished := len(m.pending), slices.Clone(m.finished)
	mine := &modelClaim{}
	want := make([]Standing, len(refs))
	room := true
	for i, r := range refs {
		switch {
		case m.pending[r.ID] != nil:
			want[i] = Pending
		case m.known(r.ID):
			want[i] = Safe
		case len(m.pending)+len(m.finished) < m.limit || len(m.finished) > 0:
			if len(m.pending)+len(m.finished) == m.limit {
				m.finished = m.finished[1:]
			}
			m.pending[r.ID] = mine
			mine.ids = append(mine.ids, r.ID)
		default:
			room = false
		}
		if !room {
			break
		}
	}
	c, ok := s.Claim(refs, 0, now)
	if ok != room {
		t.Fatalf("claimed: %v, want %v", ok, room)
	}
	if !ok {
		for _, id := range mine.ids {
			delete(m.pending, id)
		}
		if len(m.pending) != before || len(m.finished) > len(finished) {
			t.Fatal("BUG in the model")
		}
		return nil
	}
	mine.claim = c
	for i, r := range refs {
		if r.Standing != want[i] || r.Standing == Pending && r.Of != m.pending[r.ID].claim {
			t.Fatalf("id %v stands %v, want %v", r.ID, r.Standing, want[i])
		}
	}
	return mine
}

func (m *model) settle(t *rapid.T, c *modelClaim, now time.Time) {
	var fates []Fate
	for i, id := range c.claim.ids {
		delete(m.pending, c.ids[i])
		if rapid.Bool().Draw(t, "fails") {
			fates = append(fates, Fate{Place: id.place, Verdict: event.Rejected})
		} else {
			m.finished = append(m.finished, modelID{c.ids[i], now.Truncate(time.Second)})
		}
	}
	c.claim.Settle(fates, nil, now)
	for _, f := range fates {
		if got, whole := c.claim.Fate(f.Place); got.Verdict != event.Rejected || whole != nil {
			t.Fatalf("fate of %d: %+v %v", f.Place, got, whole)
		}
	}
}

func refs(from, n int) []Ref {
	all := make([]Ref, n)
	namer := Secret{1}.Namer(nil, []byte("source"))
	for i := range all {
		all[i] = Ref{ID: namer.Of(binary.BigEndian.AppendUint64(nil, uint64(from+i))), Place: int32(i)}
	}
	return all
}

// A full set of a million ids takes less than 40 bytes for each.
func TestSetMemory(t *testing.T) {
	const n = 1_000_000
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	s := NewSet(n, time.Hour, epoch)
	for from := 0; from < n+5000; from += 500 {
		c, ok := s.Claim(refs(from, 500), 0, epoch)
		if !ok {
			t.Fatal("no room")
		}
		c.Settle(nil, nil, epoch)
	}
	each := float64(heap()-before) / n
	t.Logf("%.1f bytes an id", each)
	if each > 40 {
		t.Errorf("%.1f bytes an id, want 40 at most", each)
	}
	if got := s.State(epoch); got.Finished != n || got.Reach != 0 {
		t.Errorf("%+v", got)
	}
	runtime.KeepAlive(s)
}

func TestReachShrinksWhenIdsMakeRoom(t *testing.T) {
	s := NewSet(1000, time.Minute, epoch)
	at := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }
	take := func(from, n, second int) {
		t.Helper()
		c, ok := s.Claim(refs(from, n), 0, at(second))
		if !ok {
			t.Fatal("no room")
		}
		c.Settle(nil, nil, at(second))
	}
	for _, c := range []struct{ from, n, at, reach int }{
		{0, 600, 10, 10},     // since the set was made
		{600, 600, 40, 29},   // 200 of those of second 10 had to go
		{2000, 100, 100, 60}, // everything as old as the age is there
	} {
		take(c.from, c.n, c.at)
		if got := s.State(at(c.at)).Reach; got != time.Duration(c.reach)*time.Second {
			t.Errorf("second %d: reach %v, want %d s", c.at, got, c.reach)
		}
	}
	s.Resize(50, time.Minute)
	if got := s.State(at(100)); got.Finished != 50 || got.Reach != 0 {
		t.Errorf("after Resize: %+v", got)
	}
}

// A pending id is waited for: until its events are in memory for who asked for no more, else until it is settled.
func TestClaimIsWaitedFor(t *testing.T) {
	s := NewSet(10, time.Minute, epoch)
	first, _ := s.Claim(refs(0, 3), 0, epoch)
	twins := refs(0, 4)
	second, ok := s.Claim(twins, 0, epoch)
	if !ok || twins[1].Standing != Pending || twins[1].Of != first || twins[1].First != 1 || twins[3].Standing != Fresh {
		t.Fatalf("%+v", twins)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if first.Wait(ended, event.Accepted) == nil {
		t.Error("accepted before it was taken")
	}
	first.Taken()
	if err := first.Wait(ended, event.Accepted); err != nil {
		t.Error(err)
	}
	if first.Wait(ended, event.Durable) == nil {
		t.Error("durable before it was settled")
	}
	told := 0
	first.Then(func() { told++ })
	first.Settle([]Fate{{Place: 1, Verdict: event.DeadLettered}}, nil, epoch)
	first.Then(func() { told++ })
	if err := first.Wait(ended, event.Durable); err != nil || told != 2 {
		t.Error(err, told)
	}
	for place, want := range []event.Verdict{event.Keep, event.DeadLettered, event.Keep} {
		if f, whole := first.Fate(int32(place)); f.Verdict != want || whole != nil {
			t.Errorf("event %d: %v %v, want %v", place, f.Verdict, whole, want)
		}
	}
	second.Settle(nil, event.Problemf(event.BackendFull, "no"), epoch)
	if _, whole := second.Fate(3); whole == nil {
		t.Error("the batch failed")
	}
	if s.Known(twins[1].ID, epoch) || s.Known(twins[3].ID, epoch) || !s.Known(twins[0].ID, epoch) {
		t.Error("what failed is remembered, or what is safe is not")
	}
}

func TestNamesAreApart(t *testing.T) {
	seen := map[ID]string{}
	for _, secret := range []Secret{{}, {1}} {
		for _, n := range [][3]string{{"", "a", "bc"}, {"", "ab", "c"}, {"", "", "abc"}, {"", "abc", ""}, {"a", "b", "c"}, {"ab", "", "c"}, {}} {
			id := secret.Namer([]byte(n[0]), []byte(n[1])).Of([]byte(n[2]))
			name := fmt.Sprint(secret[0], n)
			if other, ok := seen[id]; ok {
				t.Errorf("%s and %s have the same identity", other, name)
			}
			seen[id] = name
		}
	}
}

// BenchmarkClaim is 500 events of a session, taken and settled, in a full set of a million.
func BenchmarkClaim(b *testing.B) {
	s, list := NewSet(1_000_000, time.Hour, epoch), refs(0, 500)
	namer, next, ids := Secret{1}.Namer(nil, []byte("source")), uint64(1e6), [2][]byte{}
	take := func() {
		series := Series{Namer: namer}
		for i := range list {
			next++
			ids[i&1] = strconv.AppendUint(append(ids[i&1][:0], "session/"...), next, 10)
			list[i].ID = series.Of(ids[i&1])
		}
		c, ok := s.Claim(list, 0, epoch)
		if !ok {
			b.Fatal("no room")
		}
		c.Settle(nil, nil, epoch)
	}
	for range 2500 {
		take()
	}
	b.ReportAllocs()
	for b.Loop() {
		take()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/500, "ns/event")
}
