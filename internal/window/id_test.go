package window

import (
	"fmt"
	"testing"
	"time"
)

// Identities are of the whole id, and those of ids that differ in their last digit are next to each other in an index.
func TestIDsOfNumbersAreNeighbours(t *testing.T) {
	n := Secret{1}.Namer([]byte("caller"), []byte("source"))
	all, homes := map[ID]string{}, map[uint64]bool{}
	of := func(id string) ID {
		got := n.Of([]byte(id))
		if other, found := all[got]; found {
			t.Errorf("%q has the identity of %q", id, other)
		}
		all[got] = id
		return got
	}
	of("")
	for b := range 256 {
		of(string([]byte{byte(b)}))
		of("p" + string([]byte{byte(b)}))
	}
	for tens := range 100 {
		first := of(fmt.Sprintf("session/%d0", tens+1))
		homes[first.Lo>>4] = true
		for unit := 1; unit < 10; unit++ {
			if id := of(fmt.Sprintf("session/%d%d", tens+1, unit)); id.Hi != first.Hi || id.Lo>>4 != first.Lo>>4 {
				t.Errorf("%d%d is not next to %d0", tens+1, unit, tens+1)
			}
		}
	}
	series := Series{Namer: n}
	for _, id := range []string{"a", "", "s/1", "s/2", "s/9", "s/10", "s/11", "s/A", "s/a", "t/a", "t/a", "s/aa", ""} {
		if got := series.Of([]byte(id)); got != n.Of([]byte(id)) {
			t.Errorf("%q has another identity in a series", id)
		}
	}
	if len(homes) != 100 {
		t.Errorf("tens are in %d places", len(homes))
	}
}

// Of a log whose identities were made in another way nothing is taken over, and the set does not claim to know what was in it.
func TestIdentitiesOfAnEarlierVersion(t *testing.T) {
	now, log := epoch, &records{}
	s := RecoverSet(10, time.Hour, now)
	s.Keep(log, true, now)
	now = now.Add(10 * time.Second)
	c, ok := s.Claim([]Ref{{ID: ID{1, 1}}}, 1, now)
	if !ok {
		t.Fatal("no room")
	}
	c.Settle(nil, nil, now)
	for _, r := range log.all {
		if r[0] == recordIDs {
			r[0] = recordOldIDs
		}
	}
	now = now.Add(20 * time.Second)
	after := log.next(t, s, false, now)
	if got := after.State(now); got.Finished != 0 || got.Reach > 20*time.Second || got.Reach < 19*time.Second {
		t.Errorf("%+v", got)
	}
	if !after.Unread() {
		t.Error("what the log had is not missed")
	}
	if c, ok = after.Claim([]Ref{{ID: ID{2, 1}}}, 1, now); !ok {
		t.Fatal("no room")
	}
	c.Settle(nil, nil, now)
	if log.next(t, after, false, now).Unread() {
		t.Error("behind ids of this version those before are missed")
	}
}
