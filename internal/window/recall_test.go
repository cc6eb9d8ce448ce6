package window

import (
	"testing"
	"time"
)

// F46: what is recalled is known, also by the next process, ages as it did before, and makes room like all else.
func TestF46RecalledIDs(t *testing.T) {
	log, id, old := &records{}, ID{1, 2}, ID{3, 4}
	s := RecoverSet(2, time.Minute, epoch)
	s.Keep(log, true, epoch)
	if !s.Newest().IsZero() {
		t.Errorf("newest of none: %v", s.Newest())
	}
	if !s.Recall(1, id, epoch.Add(-50*time.Second), epoch) || s.Recall(1, id, epoch, epoch) {
		t.Error("an id is new once")
	}
	if s.Recall(1, old, epoch.Add(-61*time.Second), epoch) || s.Known(old, epoch) {
		t.Error("what is too old is known")
	}
	if got := s.Newest(); !got.Equal(epoch.Add(-50 * time.Second)) {
		t.Errorf("newest is %v", got)
	}
	for name, set := range map[string]*Set{"": s, "after a restart": log.next(t, s, false, epoch)} {
		if now, later := set.Known(id, epoch), set.Known(id, epoch.Add(12*time.Second)); !now || later {
			t.Errorf("%s: known %v, and when it is too old %v", name, now, later)
		}
	}
	s.Recall(1, ID{5, 1}, epoch.Add(-40*time.Second), epoch)
	s.Recall(2, ID{5, 2}, epoch, epoch)
	s.Recall(2, ID{5, 3}, epoch.Add(-time.Second), epoch)
	if st := s.State(epoch); st.Finished != 2 || !s.Known(ID{5, 3}, epoch) {
		t.Errorf("%+v", st)
	}
}

// F46: what had to make room before a crash does not come back in place of what came behind it; what is newer than that does.
func TestF46WhatHadToMakeRoomIsNotRecalled(t *testing.T) {
	const limit = 4
	log := &records{}
	s := RecoverSet(limit, time.Minute, epoch)
	s.Keep(log, true, epoch)
	at := func(i int) time.Time { return epoch.Add(time.Duration(7*i-55) * time.Second) }
	id := func(i int) ID { return ID{7, uint64(i)} }
	for i := range limit + 3 {
		if !s.Recall(1, id(i), at(i), epoch) {
			t.Fatalf("%d is not recalled", i)
		}
	}
	next := log.next(t, s, false, epoch)
	next.Keep(log, true, epoch)
	for _, owner := range []Owner{1, 2} {
		for i := range limit + 3 {
			if next.Recall(owner, id(i), at(i), epoch) || next.Known(id(i), epoch) != (i >= 3) {
				t.Errorf("owner %d: %d came back", owner, i)
			}
		}
	}
	if last := id(limit + 3); !next.Recall(2, last, at(limit+3), epoch) || !next.Known(last, epoch) || next.Known(id(3), epoch) {
		t.Error("the newest is not recalled in place of the oldest")
	}
}
