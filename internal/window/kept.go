package window

import (
	"encoding/binary"
	"time"
)

// Log keeps records over a restart; *journal.Journal is one. Both methods may be called concurrently.
type Log interface {
	// Append adds a record, which it copies; it is called with locks held and waits for nothing to speak of.
	Append(record []byte)
	// Flush returns when what was appended survives the end of the process, as far as that can be had.
	Flush()
}

// Records begin with their kind. Integers are little endian, times unix seconds.
const (
	recordSince  = 1 // time: everything that was finished since then is in the log
	recordOldIDs = 2 // as recordIDs, of identities that an earlier version made in another way: nothing is known of what came up to then
	recordAnswer = 4 // a finished run, see answerRecord; 5 is recordForgotten
	recordIDs    = 6 // owner, time, and of each id its two halves and seconds after that time: they were finished
	recordFreed  = 7 // the halves of an id: its event is not safe after all
)

const (
	idsHeader = 1 + 8 + 8
	idSize    = 8 + 8 + 4
	sinceSize = 1 + 8
)

// mostAge is how far before now a window begins that is read back at most: seconds since then are small numbers.
const mostAge = 5 * 365 * 24 * time.Hour

// earlier is when a window was made, seen from what an earlier process left in its log.
func earlier(now time.Time, age time.Duration) time.Time {
	return now.Add(-min(age, mostAge) - time.Second)
}

// placed is the second of a window that was made at from, at which something was finished at a time of day. What is of the
// future, by a clock that was set, is of now; ok is false for what is before the window.
func placed(from, now time.Time, at int64) (sec uint32, ok bool) {
	rel := at - from.Unix()
	return uint32(min(max(rel, 0), int64(second(from, now)))), rel >= 0
}

func sinceRecord(dst []byte, at int64) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, recordSince), uint64(at))
}

// RecoverSet returns a set as NewSet does, for what Restore then gives it, until Keep.
func RecoverSet(limit int, age time.Duration, now time.Time) *Set {
	return NewSet(limit, age, earlier(now, age))
}

// Restore takes a record of the log of an earlier process, in their order. It is called before any Claim.
func (s *Set) Restore(record []byte, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch kind := record[0]; {
	case kind == recordSince && len(record) == sinceSize:
		s.since(int64(binary.LittleEndian.Uint64(record[1:])), now)
	case kind == recordIDs && len(record) >= idsHeader:
		s.unread = false
		owner, at := Owner(binary.LittleEndian.Uint64(record[1:])), int64(binary.LittleEndian.Uint64(record[9:]))
		for rest := record[idsHeader:]; len(rest) >= idSize; rest = rest[idSize:] {
			s.restore(owner, readID(rest), at+int64(binary.LittleEndian.Uint32(rest[16:])), now)
		}
	case kind == recordOldIDs && len(record) >= idsHeader+idSize:
		at := int64(binary.LittleEndian.Uint64(record[9:])) + int64(binary.LittleEndian.Uint32(record[len(record)-4:]))
		sec, _ := placed(s.made, now, at)
		s.clear(int64(sec))
		s.unread = true
	case kind == recordFreed && len(record) == 17:
		s.drop(readID(record[1:]))
	case kind == recordForgotten && len(record) == sinceSize:
		sec, _ := placed(s.made, now, int64(binary.LittleEndian.Uint64(record[1:])))
		s.clear(int64(sec))
	}
}

func (s *Set) since(at int64, now time.Time) {
	if sec, ok := placed(s.made, now, at); ok {
		s.read, s.forced = true, max(s.forced, int64(sec))
	} else {
		s.read = true
	}
}

// restore adds an id that was finished before.
func (s *Set) restore(o Owner, id ID, at int64, now time.Time) {
	sec, ok := placed(s.made, now, at)
	if !ok {
		return
	}
	if n, found := s.find(id); found {
		if s.entry(n).at >= sec {
			return
		}
		s.extract(n) // it was forgotten and finished anew: the entry that there is stays in its chain, and is not found any more
	}
	if s.finished >= s.limit {
		s.force(s.shares.heap[0])
	}
	sh := s.shares.use(o)
	if newest := sh.held.newest; newest != 0 { // a clock that was set back must not break the order
		sec = max(sec, s.entry(newest-1).at)
	}
	s.finish(s.place(id), sec, sh)
	s.shares.done(sh)
}

// Keep has what is finished from now on written to the log. whole says that Restore had all of it; else it is known that
// something is missing of what was before, as after a damage.
func (s *Set) Keep(log Log, whole bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = log
	if !whole || !s.read {
		s.forced, s.read = int64(second(s.made, now)), false
	}
}

// Flush returns when all that was settled before is in the log, as far as that can be had.
func (s *Set) Flush() {
	if s.log != nil {
		s.log.Flush()
	}
}

// record begins the record of ids that are finished now; s.mu is held.
func (s *Set) record(o Owner, now uint32) {
	if s.log == nil {
		return
	}
	s.scratch = append(s.scratch[:0], recordIDs)
	s.scratch = binary.LittleEndian.AppendUint64(s.scratch, uint64(o))
	s.scratch = binary.LittleEndian.AppendUint64(s.scratch, uint64(s.made.Unix()+int64(now)))
}

// note adds an id to the record.
func (s *Set) note(n, after uint32) {
	if s.log == nil {
		return
	}
	id := s.entry(n).id
	s.scratch = binary.LittleEndian.AppendUint64(s.scratch, id.Hi)
	s.scratch = binary.LittleEndian.AppendUint64(s.scratch, id.Lo)
	s.scratch = binary.LittleEndian.AppendUint32(s.scratch, after)
}

// noted appends the record to the log, if it has ids.
func (s *Set) noted() {
	if s.log != nil && len(s.scratch) > idsHeader {
		s.say(s.scratch)
	}
}

// say appends a record to the log, which is begun where there are ids.
func (s *Set) say(record []byte) {
	if !s.read {
		s.log.Append(sinceRecord(nil, s.made.Unix()+s.forced+1))
		s.read = true
	}
	s.log.Append(record)
}

// Free forgets an id, or makes a pending one end like that: its event is not safe after all, since the backend refused it for
// good and nobody else took it.
func (s *Set) Free(id ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(id)
	if s.log != nil { // which may have it even when it was forgotten
		record := binary.LittleEndian.AppendUint64([]byte{recordFreed}, id.Hi)
		s.say(binary.LittleEndian.AppendUint64(record, id.Lo))
	}
}

// drop removes a finished id from its chain, wherever that is: it happens so rarely that all may be searched.
func (s *Set) drop(id ID) {
	n, found := s.find(id)
	if !found {
		return
	}
	if s.entry(n).at&pending != 0 {
		if s.doomed == nil {
			s.doomed = map[ID]bool{}
		}
		s.doomed[id] = true
		return
	}
	for _, sh := range s.shares.of {
		before := uint32(0)
		for next := sh.held.oldest; next != 0; before, next = next, s.entry(next-1).next {
			if next != n+1 {
				continue
			}
			if after := s.entry(n).next; before == 0 {
				sh.held.oldest = after
			} else {
				s.entry(before - 1).next = after
			}
			if sh.held.newest == n+1 {
				sh.held.newest = before
			}
			sh.size--
			s.finished--
			s.remove(n)
			s.shares.sized(sh)
			return
		}
	}
	panic("BUG: window: a finished id is in no chain")
}

// Snapshot calls emit with records that say what is finished. What is finished, or freed, meanwhile is perhaps not in them, or
// is all the same: the log has a record of it that is read later.
func (s *Set) Snapshot(emit func(record []byte) error) error {
	s.mu.Lock()
	var owners []Owner
	for o := range s.shares.of {
		owners = append(owners, o)
	}
	record := sinceRecord(nil, s.made.Unix()+s.forced+1)
	s.mu.Unlock()
	if err := emit(record); err != nil {
		return err
	}
	for _, o := range owners {
		last := uint32(0)
		var id ID
		for {
			record, last, id = s.chain(record[:0], o, last, id)
			if last == 0 {
				break
			}
			if err := emit(record); err != nil {
				return err
			}
		}
	}
	return nil
}

// chain makes a record of the next finished ids of an owner behind an entry, 0 for all of them; it returns the last one, 0
// when there are none. When that entry was forgotten meanwhile, all before it were too.
func (s *Set) chain(dst []byte, o Owner, behind uint32, id ID) ([]byte, uint32, ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := s.shares.of[o]
	if sh == nil {
		return dst, 0, ID{}
	}
	next := sh.held.oldest
	if behind != 0 {
		if e := s.entry(behind - 1); e.id == id && e.at&pending == 0 && s.holds(id) {
			next = e.next
		}
	}
	if next == 0 {
		return dst, 0, ID{}
	}
	first := s.entry(next - 1).at
	dst = append(dst, recordIDs)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(o))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.made.Unix()+int64(first)))
	for n := 0; next != 0 && n < part; n++ {
		e := s.entry(next - 1)
		dst = binary.LittleEndian.AppendUint64(dst, e.id.Hi)
		dst = binary.LittleEndian.AppendUint64(dst, e.id.Lo)
		dst = binary.LittleEndian.AppendUint32(dst, e.at-first)
		behind, id, next = next, e.id, e.next
	}
	return dst, behind, id
}

func (s *Set) holds(id ID) bool {
	_, found := s.find(id)
	return found
}

func readID(p []byte) ID {
	return ID{binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])}
}
