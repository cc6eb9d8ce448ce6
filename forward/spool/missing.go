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
	Events    uint64      // at most: fewer when the backend has some and nobody could note that any more
	Numbers   [][2]uint64 // first and last, of which they are

	// More says that the cursor was older than the files. A kill leaves that of what was acknowledged to nobody; after a power cut, events
	// may have been acknowledged that it had not counted, and if their file is gone too, they are not among these.
	More bool
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
	more := ""
	if m.More {
		more = "; if this was a power cut, maybe some that were written last besides"
	}
	return fmt.Sprintf("partition %d: up to %d events of the numbers %s%s", m.Partition, m.Events, strings.Join(numbers, ", "), more)
}

// missing compares what a lane should have with those of its events that were found and had been counted, and with the frames that
// are not confirmed, in order. Each event that is lost was counted and has its number between frames: so it is as many as both
// say, or fewer.
func (l place) missing(partition int32, counted uint64, refs []ref) (m Missing, ok bool) {
	if l.events <= l.before+counted {
		return m, false
	}
	next, gap := l.confirmed+1, uint64(0)
	between := func(to uint64) {
		if to = min(to, l.written); to >= next {
			m.Numbers = append(m.Numbers, [2]uint64{next, to})
			gap += to - next + 1
		}
	}
	for i := range refs {
		between(refs[i].first - 1)
		next = max(next, refs[i].last()+1)
	}
	between(l.written)
	m.Partition, m.Events = partition, min(l.events-l.before-counted, gap)
	named := slices.DeleteFunc(slices.Clone(m.Numbers), func(n [2]uint64) bool { return n[1]-n[0] > numberJump })
	if spanned(named) >= m.Events {
		m.Numbers = named
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

// countedIn adds up what the segments hold of a partition of what the cursor had counted, but those that are not expected any more.
func countedIn(segments []*segment, oldest uint64, partition int) (events uint64) {
	for _, seg := range segments {
		if seg.number >= oldest && partition < len(seg.counted) {
			events += seg.counted[partition]
		}
	}
	return events
}

// lags tells whether files hold more than the cursor had counted, or might.
func (l *ledger) lags(segments []*segment) bool {
	return l.old || slices.ContainsFunc(segments, func(s *segment) bool { return s.behind })
}

// takeStock reports what was lost while nobody looked, and expects from now on what there is.
func (s *Spool) takeStock() {
	oldest, whole, lags := s.cursor.oldest, true, s.cursor.lags(s.segments)
	for _, seg := range s.segments {
		whole = whole && !seg.unread
	}
	var lost []string
	for p := range s.lanes {
		l := s.cursor.lanes[p]
		l.confirmed = s.lanes[p].confirmed
		m, ok := l.missing(int32(p), countedIn(s.segments, oldest, p), s.lanes[p].refs)
		if !ok || !whole {
			continue
		}
		m.More = lags
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

// testify leaves a note in the quarantine, since the next start will find nothing missing.
func (s *Spool) testify(lost []string) error {
	file, err := s.files.Open(fmt.Sprintf("%s/missing-%d", logfolder.Quarantine, time.Now().UnixNano()), true)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte(strings.Join(lost, "\n")+"\n"), 0)
	return errors.Join(err, file.Sync(), file.Close())
}
