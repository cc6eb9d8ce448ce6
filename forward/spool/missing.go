package spool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate-io/headgate/internal/logfolder"
)

// Missing is what the files of a spool should hold of one partition and do not, as far as no backend has confirmed it: files
// were removed or cut off, or cannot be read in places.
type Missing struct {
	Partition int32
	Events    uint64      // at most
	Numbers   [][2]uint64 // first and last, of which they are
}

// String names the numbers.
func (m Missing) String() string {
	var numbers []string
	for i, n := range m.Numbers {
		if i == 8 {
			numbers = append(numbers, "...")
			break
		}
		numbers = append(numbers, fmt.Sprintf("%d-%d", n[0], n[1]))
	}
	return fmt.Sprintf("partition %d: up to %d events of the numbers %s", m.Partition, m.Events, strings.Join(numbers, ", "))
}

// missing compares what a lane should have with the frames that were found, of which refs are the ones not confirmed, in order.
func (l place) missing(partition int32, found uint64, refs []ref) (m Missing, ok bool) {
	if l.events < l.before+found || l.events == l.before+found {
		return m, false
	}
	m = Missing{Partition: partition, Events: l.events - l.before - found}
	next, gap := l.confirmed+1, uint64(0)
	for i := range refs {
		r := &refs[i]
		if r.first > next {
			m.Numbers = append(m.Numbers, [2]uint64{next, r.first - 1})
			gap += r.first - next
		}
		next = max(next, r.last()+1)
	}
	if l.written >= next {
		m.Numbers = append(m.Numbers, [2]uint64{next, l.written})
		gap += l.written - next + 1
	}
	m.Events = min(m.Events, gap)
	named := slices.DeleteFunc(slices.Clone(m.Numbers), func(n [2]uint64) bool { return n[1]-n[0] > numberJump })
	if n := spanned(named); n >= m.Events && m.Events > 0 {
		// After a kill the cursor may know less than was written: the numbers are the upper bound.
		m.Numbers, m.Events = named, n
	}
	return m, m.Events > 0
}

// numberJump is more than was ever lost at once: lanes on HTTP nodes begin that high, and others go on as far above.
const numberJump = 1 << 31

func spanned(numbers [][2]uint64) (n uint64) {
	for _, r := range numbers {
		n += r[1] - r[0] + 1
	}
	return n
}

// foundIn adds up what the segments hold of a partition, but those that are not expected any more.
func foundIn(segments []*segment, oldest uint64, partition int) (events uint64) {
	for _, seg := range segments {
		if seg.number >= oldest && partition < len(seg.events) {
			events += seg.events[partition]
		}
	}
	return events
}

// takeStock reports what was lost while nobody looked, and expects from now on what there is.
func (s *Spool) takeStock() {
	oldest, whole := s.cursor.oldest, true
	for _, seg := range s.segments {
		whole = whole && !seg.unread
	}
	var lost []string
	for p := range s.lanes {
		l := s.cursor.lanes[p]
		l.confirmed = s.lanes[p].confirmed
		m, ok := l.missing(int32(p), foundIn(s.segments, oldest, p), s.lanes[p].refs)
		if !ok || !whole {
			continue
		}
		s.lanes[p].missing = m.Events
		s.stats.Lost += m.Events
		s.stats.Missing += m.Events
		lost = append(lost, m.String())
		s.log.Error("EVENTS IN THE SPOOL ARE LOST: its files do not hold what was written to them", "partition", p,
			"events_at_most", m.Events, "numbers", m.String(), "files_missing", absent(s.segments, &s.cursor.ledger))
	}
	if !whole {
		return
	}
	err := s.cursor.expect(s.segments)
	if len(lost) > 0 {
		err = errors.Join(err, s.testify(lost))
	}
	if err != nil {
		s.log.Warn("what the spool should hold can't be written down", "error", err)
	}
}

// absent says which segments there should be and are not, "none" when all are there.
func absent(segments []*segment, l *ledger) string {
	there := map[uint64]bool{}
	for _, seg := range segments {
		there[seg.number] = true
	}
	var all []string
	for n := l.oldest; n > 0 && n <= l.newest && len(all) < 16; n++ {
		if !there[n] {
			all = append(all, fmt.Sprintf("%016x-*.seg", n))
		}
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// testify leaves a note in the logfolder.Quarantine, since the next start will find nothing missing.
func (s *Spool) testify(lost []string) error {
	file, err := s.files.Open(fmt.Sprintf("%s/missing-%d", logfolder.Quarantine, time.Now().UnixNano()), true)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte(strings.Join(lost, "\n")+"\n"), 0)
	return errors.Join(err, file.Sync(), file.Close())
}
