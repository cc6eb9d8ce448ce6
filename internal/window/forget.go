package window

import (
	"encoding/binary"
	"time"
)

// recordForgotten is a record of a time: all that was finished before it in the log is forgotten.
const recordForgotten = 5

func forgottenRecord(at int64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{recordForgotten}, uint64(at))
}

// Forget forgets every finished id, in the log too: some of their events are not stored any more. What the set remembers begins
// anew; pending ids go on.
func (s *Set) Forget(now time.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = s.finished
	sec := second(s.made, now)
	s.clear(int64(sec))
	if s.log != nil {
		s.say(forgottenRecord(s.made.Unix() + int64(sec)))
	}
	return n
}

// clear forgets what is finished, up to a second.
func (s *Set) clear(sec int64) {
	for _, sh := range s.shares.of {
		for sh.size > 0 {
			s.forget(sh)
		}
		s.shares.sized(sh)
	}
	s.forced, s.due = max(s.forced, sec), never
}

// Forget forgets every finished run with its answer, in the log too; see Set.Forget.
func (k *Keys) Forget(now time.Time) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n = k.all.Len()
	sec := second(k.made, now)
	k.clear(int64(sec))
	if k.log != nil && k.read {
		k.log.Append(forgottenRecord(k.made.Unix() + int64(sec)))
	}
	return n
}

func (k *Keys) clear(sec int64) {
	for f := k.all.Front(); f != nil; f = k.all.Front() {
		k.forget(f.Value.(*Run))
	}
	k.forgotten(sec)
}
