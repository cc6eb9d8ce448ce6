package window

import (
	"testing"
	"time"
)

// What was remembered before a loss is forgotten, over a restart too, whether the log was replaced or not; what comes behind is
// remembered, in the same second too, and the reach begins anew.
func TestForgottenStaysForgotten(t *testing.T) {
	for _, snapshot := range []bool{false, true} {
		log, now := &records{}, epoch
		s := RecoverSet(100, time.Minute, now)
		s.Keep(log, true, now)
		finish := func(s *Set, id uint64, owner Owner) {
			c, ok := s.Claim([]Ref{{ID: ID{id, id}}}, owner, now)
			if !ok {
				t.Fatal("no room")
			}
			c.Settle(nil, nil, now)
		}
		finish(s, 1, 1)
		finish(s, 2, 2)
		now = now.Add(20 * time.Second)
		open, _ := s.Claim([]Ref{{ID: ID{4, 4}}}, 1, now)
		if n := s.Forget(now); n != 2 {
			t.Errorf("%d forgotten", n)
		}
		finish(s, 3, 1)
		open.Settle(nil, nil, now)
		for range 2 {
			now = now.Add(5 * time.Second)
			for id, want := range map[uint64]bool{1: false, 2: false, 3: true, 4: true} {
				if s.Known(ID{id, id}, now) != want {
					t.Errorf("id %d is known: %v", id, !want)
				}
			}
			if st := s.State(now); st.Reach > 10*time.Second || st.Reach < 3*time.Second || st.Finished != 2 {
				t.Errorf("%+v", st)
			}
			s = log.next(t, s, snapshot, now)
		}
	}
}

func TestForgottenAnswersStayForgotten(t *testing.T) {
	log, now := &records{}, epoch
	k := RecoverKeys(100, time.Minute, now)
	k.Keep(log, true, now)
	finish := func(key byte) {
		r, standing := k.Begin(Request{Key: Sum{key}, Owner: 1}, now)
		if standing != NewRun {
			t.Fatalf("%d stands at %d", key, standing)
		}
		r.Safe()
		r.Finish(Answer{Status: 200, Doc: []byte("{}")}, now)
	}
	finish(1)
	now = now.Add(20 * time.Second)
	if n := k.Forget(now); n != 1 {
		t.Errorf("%d forgotten", n)
	}
	finish(2)
	now = now.Add(5 * time.Second)
	after := RecoverKeys(100, time.Minute, now)
	for _, record := range log.all {
		after.Restore(record, now)
	}
	after.Keep(log, true, now)
	for _, k := range []*Keys{k, after} {
		if reach := k.Reach(1, now); reach > 10*time.Second {
			t.Errorf("reaches %v back", reach)
		}
		for key, want := range map[byte]int{1: NewRun, 2: Finished} {
			if _, standing := k.Begin(Request{Key: Sum{key}, Owner: 1}, now); standing != want {
				t.Errorf("%d stands at %d", key, standing)
			}
		}
	}
}
