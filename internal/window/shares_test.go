package window

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// take claims n ids from the given number on, and settles them.
func take(t *testing.T, s *Set, owner Owner, from, n int, now time.Time) {
	t.Helper()
	c, ok := s.Claim(refs(from, n), owner, now)
	if !ok {
		t.Fatal("no room")
	}
	c.Settle(nil, nil, now)
}

func (s *Set) known(from, n int, now time.Time) (found int) {
	for _, r := range refs(from, n) {
		if s.Known(r.ID, now) {
			found++
		}
	}
	return found
}

// One owner's ids, however many, push out its own: what others hold within their part of the room stays.
func TestIDsOfOthersStay(t *testing.T) {
	s := NewSet(3000, time.Minute, epoch)
	take(t, s, 1, 0, 1000, epoch)
	for i := range 10 {
		take(t, s, 2, 10_000+1000*i, 1000, epoch)
	}
	for i := range 10 {
		take(t, s, 3, 30_000+1000*i, 1000, epoch)
	}
	if n := s.known(0, 1000, epoch); n != 1000 {
		t.Errorf("%d of 1000 ids of the first owner are known", n)
	}
	for owner, from := range map[Owner]int{2: 19_000, 3: 39_000} {
		if n := s.known(from, 1000, epoch); n < 999 { // its newest
			t.Errorf("%d of the newest 1000 ids of owner %d are known", n, owner)
		}
	}
	if got := s.State(epoch.Add(2 * time.Minute)); got.Finished != 0 || len(s.shares.of) != 0 {
		t.Errorf("%+v and %d shares are left", got, len(s.shares.of))
	}
}

// An owner whose events stand still takes from others for half of the room and one request more.
func TestPendingIDsOfOneLeaveRoom(t *testing.T) {
	s := NewSet(1000, time.Minute, epoch)
	take(t, s, 1, 0, 1000, epoch)
	claimed := 0
	for {
		if _, ok := s.Claim(refs(5000+claimed, 300), 2, epoch); !ok {
			break
		}
		claimed += 300
	}
	if got := s.State(epoch); claimed != 600 || got.Pending != 600 || got.Finished != 400 {
		t.Errorf("%d are claimed, %+v", claimed, got)
	}
	take(t, s, 1, 20_000, 400, epoch) // who can take of its own only
	if _, ok := s.Claim(refs(50_000, 1000), 3, epoch); ok {
		t.Error("more than there is room for was claimed")
	}
}

// Whoever comes, shares are ranked by what they hold, and only as many as the limit have their own.
func TestSharesAreRanked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s shares[int]
		using := map[*share[int]]int{}
		for range 200 {
			sh := s.use(Owner(rapid.IntRange(0, 20).Draw(t, "owner")))
			using[sh]++
			sh.size = rapid.IntRange(0, 5).Draw(t, "size")
			s.sized(sh)
			if rapid.Bool().Draw(t, "done") {
				for sh := range using {
					sh.size = 0
					if using[sh]--; using[sh] == 0 {
						delete(using, sh)
					}
					s.done(sh)
					break
				}
			}
			for i, sh := range s.heap {
				if sh.place != i || sh.size > s.heap[0].size || s.of[sh.owner] != sh {
					t.Fatalf("share %d of %+v", i, sh)
				}
			}
			if len(s.of) != len(s.heap) || len(s.of) < len(using) {
				t.Fatalf("%d shares, %d in the heap, %d used", len(s.of), len(s.heap), len(using))
			}
		}
	})
	var many shares[int]
	for o := range Owner(3 * ownShares) {
		many.use(1_000_000 + o)
	}
	if len(many.of) > ownShares+commonShares || many.find(1_000_000+2*ownShares) == nil {
		t.Errorf("%d shares", len(many.of))
	}
}
