package window

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func begin(t *testing.T, k *Keys, key, content string, now time.Time, want int) *Run {
	t.Helper()
	r, standing := k.Begin(Request{Key: Sums([]byte(key)), Content: Sums([]byte(content))}, now)
	if standing != want {
		t.Errorf("key %s with %s: %d, want %d", key, content, standing, want)
	}
	return r
}

func TestKeyIsBoundToItsContent(t *testing.T) {
	k := NewKeys(10, time.Minute, epoch)
	r := begin(t, k, "k", "a", epoch, NewRun)
	begin(t, k, "k", "a", epoch, Running)
	begin(t, k, "k", "b", epoch, Different)
	begin(t, k, "other", "a", epoch, NewRun).Forget()
	begin(t, k, "other", "b", epoch, NewRun).Forget()
	r.Finish(Answer{Status: 200, Doc: []byte("done")}, epoch)
	begin(t, k, "k", "b", epoch, Different)
	a, ok, err := begin(t, k, "k", "a", epoch, Finished).Wait(t.Context())
	if err != nil || !ok || string(a.Doc) != "done" {
		t.Errorf("%+v %v %v", a, ok, err)
	}
	begin(t, k, "k", "b", epoch.Add(62*time.Second), NewRun) // forgotten when it is old enough
}

func TestUnknownOutcomeIsWaitedFor(t *testing.T) {
	k := NewKeys(10, time.Minute, epoch)
	r := begin(t, k, "k", "a", epoch, NewRun)
	r.SetUnknown()
	again := begin(t, k, "k", "a", epoch.Add(time.Hour), Unknown) // a running one has no age
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := again.Wait(ended); err == nil {
		t.Error("Wait did not wait")
	}
	r.Finish(Answer{Status: 207}, epoch.Add(time.Hour))
	if a, ok, err := again.Wait(ended); err == nil && (!ok || a.Status != 207) {
		t.Errorf("%+v %v", a, ok)
	}
	begin(t, k, "k", "a", epoch.Add(time.Hour), Finished)
}

func TestOldestFinishedKeyMakesRoom(t *testing.T) {
	k := NewKeys(2, time.Minute, epoch)
	at := func(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }
	for i, key := range []string{"1", "2", "3"} {
		begin(t, k, key, "", at(5*i), NewRun).Finish(Answer{Status: 200}, at(5*i))
	}
	running := begin(t, k, "4", "", at(10), NewRun) // beside 2 and 3, of which neither makes room yet
	begin(t, k, "2", "", at(10), Finished)
	begin(t, k, "5", "", at(10), Full)
	if got := k.State(at(20)); got != (State{Pending: 1, Finished: 2, Reach: 19 * time.Second}) {
		t.Errorf("%+v", got)
	}
	running.Forget()
	noise := make([]byte, answersRoom+1)
	rand.NewChaCha8([32]byte{}).Read(noise)
	begin(t, k, "4", "", at(20), NewRun).Finish(Answer{Status: 200, Doc: noise}, at(20))
	if got := k.State(at(20)); got.Finished != 0 || got.Reach != 0 {
		t.Errorf("an answer over the limit is kept: %+v", got)
	}
}

// One owner's keys, however many and with whatever answers, push out its own.
func TestKeysOfOthersStay(t *testing.T) {
	const limit = 300
	k := NewKeys(limit, time.Minute, epoch)
	run := func(owner Owner, n int, doc []byte, now time.Time) {
		t.Helper()
		r, standing := k.Begin(Request{Key: Sums([]byte{byte(owner), byte(n >> 8), byte(n)}), Stream: "s", Owner: owner}, now)
		if standing != NewRun {
			t.Fatalf("key %d of %d: %d", n, owner, standing)
		}
		r.Finish(Answer{Status: 200, Doc: doc}, now)
	}
	large := make([]byte, 5*k.room)
	rand.NewChaCha8([32]byte{}).Read(large)
	for i := range 100 {
		run(1, i, nil, epoch)
	}
	for i := range 2 * limit {
		run(2, i, nil, epoch.Add(time.Second))
	}
	for i := range 2 * limit {
		run(3, i, large, epoch.Add(2*time.Second))
	}
	for n := range 100 {
		if _, standing := k.Begin(Request{Key: Sums([]byte{1, 0, byte(n)}), Stream: "s", Owner: 1}, epoch.Add(2*time.Second)); standing != Finished {
			t.Fatalf("key %d of 1 is gone", n)
		}
	}
	if k.size > limit || k.size < limit-5 {
		t.Errorf("the window holds answers that count as %d keys, the limit is %d", k.size, limit)
	}
	now := epoch.Add(10 * time.Second)
	for owner, want := range map[Owner]time.Duration{1: 10 * time.Second, 2: 8 * time.Second, 3: 7 * time.Second, 4: 10 * time.Second} {
		if got := k.Reach(owner, now); got != want {
			t.Errorf("the window of %d reaches back %v, want %v", owner, got, want)
		}
	}
	if got := k.State(epoch.Add(2 * time.Minute)); got.Finished != 0 || len(k.shares.of) != 0 || len(k.shares.heap) != 0 || k.size != 0 {
		t.Errorf("%+v and %d shares are left", got, len(k.shares.of))
	}
}

// Keys that run, since their stream stands still, take neither the place of others that run nor of those that have ended.
func TestKeysOfAStalledStreamLeaveRoom(t *testing.T) {
	k := NewKeys(100, time.Minute, epoch)
	next := 0
	ask := func(stream string, owner Owner) (*Run, int) {
		next++
		return k.Begin(Request{Key: Sums([]byte{byte(next >> 8), byte(next)}), Stream: stream, Owner: owner}, epoch)
	}
	for range 100 {
		r, _ := ask("good", 1)
		r.Finish(Answer{Status: 200}, epoch)
	}
	fill := func(stream string, owner Owner) (n int) {
		for {
			if _, standing := ask(stream, owner); standing == Full {
				return n
			}
			n++
		}
	}
	var got []int
	for _, c := range []cell{{"stalled", 1}, {"stalled", 2}, {"other", 1}, {"good", 1}} {
		got = append(got, fill(c.stream, c.owner))
	}
	if want := []int{34, 11, 19, 12}; !slices.Equal(got, want) {
		t.Errorf("%v run, want %v", got, want)
	}
	if s := k.State(epoch); s.Finished != 100 || s.Pending != k.running.all {
		t.Errorf("%+v", s)
	}
	for _, r := range k.runs {
		if r.place == nil {
			r.Forget()
		}
	}
	if s := k.State(epoch); s.Pending != 0 || len(k.running.cells)+len(k.running.streams) != 0 || s.Finished != 100 {
		t.Errorf("%+v, %v", s, k.running)
	}
}

// Large answers, which are lists of errors, are kept compressed and come out as they were.
func TestLargeAnswersArePacked(t *testing.T) {
	k := NewKeys(100_000, time.Minute, epoch)
	var doc []byte
	for i := range 100 {
		doc = fmt.Appendf(doc, `{"index":%d,"offset":%d,"code":"trailing_data","detail":"a second value starts at byte 8 of the event: NDJSON needs a newline after each","retryable":false},`, i, 8+16*i)
	}
	r := begin(t, k, "k", "", epoch, NewRun)
	r.Finish(Answer{Status: 207, MediaType: "m", Rejected: "100", Doc: doc}, epoch)
	t.Logf("%d bytes count as %d keys", len(doc), r.size)
	if r.size > 4 || cap(r.answer.doc) > 4*k.room {
		t.Errorf("%d bytes are kept as %d and count as %d keys", len(doc), cap(r.answer.doc), r.size)
	}
	if a, ok, err := r.Wait(t.Context()); err != nil || !ok || a.Status != 207 || a.MediaType != "m" || a.Rejected != "100" || !bytes.Equal(a.Doc, doc) {
		t.Errorf("%+v", a)
	}
}

func TestSumsAreApart(t *testing.T) {
	if Sums([]byte("a"), []byte("bc")) == Sums([]byte("ab"), []byte("c")) || Sums() == Sums(nil) {
		t.Error("different parts have the same sum")
	}
}
