package window

import (
	"fmt"
	"testing"
	"time"
)

// storedID is an id as the stored frames have it.
type storedID struct {
	id ID
	at time.Time
}

// killed is the next process behind one whose log lost what was not flushed: as the gateway does, it recalls from the frames of the
// last minute what it does not know, the oldest first.
func (r *records) killed(t *testing.T, s *Set, snapshot bool, stored []storedID, now time.Time) *Set {
	r.all = r.all[:r.flushed]
	next := r.next(t, s, snapshot, now)
	for _, f := range stored {
		if now.Sub(f.at) <= time.Minute && !next.Known(f.id, now) {
			next.Recall(1<<40, f.id, f.at, now)
		}
	}
	r.Flush()
	return next
}

// F46: however often the process is killed while a window is full, what one caller finished last is known: half of what there is room for
// at least. How fast ids come decides how far back the window reaches: less than a second, some seconds, more than what is recalled.
func TestF46FullWindowOverKills(t *testing.T) {
	const limit, part, kills = 200, 10, 30
	for _, rate := range []int{1, 4, 30} { // parts a second, and a kill each second
		t.Run(fmt.Sprint(rate*part), func(t *testing.T) {
			log, now := &records{}, epoch
			s := RecoverSet(limit, 10*time.Minute, now)
			s.Keep(log, true, now)
			var stored []storedID
			check := func(when string) {
				t.Helper()
				for i := max(0, len(stored)-limit/2); i < len(stored); i++ {
					if !s.Known(stored[i].id, now) {
						t.Fatalf("%s: id %d of %d is forgotten", when, i, len(stored))
					}
				}
			}
			for kill := range kills {
				for n := range rate {
					var refs []Ref
					for place := range int32(part) {
						id := ID{uint64(len(stored)), 1}
						refs = append(refs, Ref{ID: id, Place: place})
						stored = append(stored, storedID{id, now})
					}
					c, ok := s.Claim(refs, 1, now)
					if !ok {
						t.Fatal("no room")
					}
					c.Settle(nil, nil, now)
					if n != rate-1 {
						log.Flush() // the last request's ids are lost to the log
					}
					now = now.Add(time.Second / time.Duration(rate))
				}
				check(fmt.Sprintf("before kill %d", kill))
				s = log.killed(t, s, kill%4 == 3, stored, now)
				check(fmt.Sprintf("behind kill %d", kill))
			}
		})
	}
}
