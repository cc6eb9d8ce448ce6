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
