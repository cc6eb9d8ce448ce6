package window

import (
	"context"
	"testing"
	"time"
)

func begin(t *testing.T, k *Keys, key, content string, now time.Time, want int) *Run {
	t.Helper()
	r, standing := k.Begin(Sums([]byte(key)), Sums([]byte(content)), now)
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
	first := begin(t, k, "1", "", at(0), NewRun)
	begin(t, k, "2", "", at(5), NewRun).Finish(Answer{Status: 200}, at(5))
	begin(t, k, "3", "", at(10), NewRun) // instead of 2, not of 1, which runs
	begin(t, k, "1", "", at(10), Running)
	begin(t, k, "4", "", at(10), Full)
	if got := k.State(at(20)); got != (State{Pending: 2, Reach: 14 * time.Second}) {
		t.Errorf("%+v", got)
	}
	first.Forget()
	begin(t, k, "4", "", at(20), NewRun).Finish(Answer{Status: 200, Doc: make([]byte, maxAnswers+1)}, at(20))
	if got := k.State(at(20)); got != (State{Pending: 1}) {
		t.Errorf("answers over the limit are kept: %+v", got)
	}
}

func TestSumsAreApart(t *testing.T) {
	if Sums([]byte("a"), []byte("bc")) == Sums([]byte("ab"), []byte("c")) || Sums() == Sums(nil) {
		t.Error("different parts have the same sum")
	}
}
