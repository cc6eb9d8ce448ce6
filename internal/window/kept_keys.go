package window

import (
	"encoding/binary"
	"time"
)

// RecoverKeys returns a window as NewKeys does, for what Restore then gives it, until Keep.
func RecoverKeys(limit int, age time.Duration, now time.Time) *Keys {
	return NewKeys(limit, age, earlier(now, age))
}

// An answer's record: kind, owner (8), time (8), key (32), content (32), status (2), 1 when the document is compressed (1),
// the lengths of media type and rejections (1, 1), these two, and the document.
const answerHeader = 1 + 8 + 8 + 2*len(Sum{}) + 2 + 1 + 1 + 1

// mostKept is the largest document that is kept in the log; answers with larger ones are remembered by this process alone.
const mostKept = 512 << 10

// keep appends a finished run whose events are all safe to the log; k.mu is held.
func (k *Keys) keep(r *Run) {
	if k.log == nil || !r.safe || r.place == nil || len(r.answer.doc) > mostKept {
		return
	}
	if !k.read { // the first one: a log is begun where there are keys
		k.log.Append(sinceRecord(nil, k.made.Unix()+k.forced+1))
		k.read = true
	}
	k.scratch = k.appendAnswer(k.scratch[:0], r)
	k.log.Append(k.scratch)
}

func (k *Keys) appendAnswer(dst []byte, r *Run) []byte {
	a := &r.answer
	dst = append(dst, recordAnswer)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(r.share.owner))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(k.made.Unix()+int64(r.at)))
	dst = append(append(dst, r.key[:]...), r.content[:]...)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(a.status))
	small := byte(0)
	if a.small {
		small = 1
	}
	dst = append(dst, small, byte(len(a.mediaType)), byte(len(a.rejected)))
	return append(append(append(dst, a.mediaType...), a.rejected...), a.doc...)
}

// Safe says that all events of the request are safe: when it is finished its answer may be kept for good.
func (r *Run) Safe() {
	k := r.keys
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.safe {
		return
	}
	r.safe = true
	k.keep(r)
}

// Restore takes a record of the log of an earlier process, in their order. It is called before any Begin.
func (k *Keys) Restore(record []byte, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch kind := record[0]; {
	case kind == recordSince && len(record) == sinceSize:
		k.read = true
		if sec, ok := placed(k.made, now, int64(binary.LittleEndian.Uint64(record[1:]))); ok {
			k.forgotten(int64(sec))
		}
	case kind == recordAnswer && len(record) >= answerHeader:
		k.restore(record[1:], now)
	case kind == recordForgotten && len(record) == sinceSize:
		sec, _ := placed(k.made, now, int64(binary.LittleEndian.Uint64(record[1:])))
		k.clear(int64(sec))
	}
}

// forgotten notes that what was finished up to a second may be missing, whoever's it was.
func (k *Keys) forgotten(sec int64) {
	k.forced, k.lost = max(k.forced, sec), max(k.lost, sec)
	for _, sh := range k.shares.of {
		sh.held.forced = max(sh.held.forced, sec)
	}
}

func (k *Keys) restore(p []byte, now time.Time) {
	r := &Run{keys: k, safe: true, ended: make(chan struct{})}
	owner := Owner(binary.LittleEndian.Uint64(p))
	at, ok := placed(k.made, now, int64(binary.LittleEndian.Uint64(p[8:])))
	p = p[16:]
	p = p[copy(r.key[:], p):]
	p = p[copy(r.content[:], p):]
	media, rejected := int(p[3]), int(p[4])
	if text := p[5:]; !ok || k.runs[r.key] != nil || len(text) < media+rejected {
		return
	} else {
		r.answer = packed{status: int(binary.LittleEndian.Uint16(p)), small: p[2] == 1, mediaType: string(text[:media]),
			rejected: string(text[media : media+rejected]), doc: append([]byte(nil), text[media+rejected:]...)}
	}
	if f := k.all.Back(); f != nil { // a clock that was set back must not break the order
		at = max(at, f.Value.(*Run).at)
	}
	r.at, r.share = at, k.share(owner)
	k.runs[r.key] = r
	k.enter(r)
}

// Keep has what is finished from now on written to the log; see Set.Keep.
func (k *Keys) Keep(log Log, whole bool, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log = log
	if !whole || !k.read {
		k.forgotten(int64(second(k.made, now)))
		k.read = false
	}
}

// Flush returns when all that was finished before is in the log, as far as that can be had.
func (k *Keys) Flush() {
	if k.log != nil {
		k.log.Flush()
	}
}

// Snapshot calls emit with records that say what is finished and safe; see Set.Snapshot.
func (k *Keys) Snapshot(emit func(record []byte) error) error {
	k.mu.Lock()
	runs := make([]*Run, 0, k.all.Len())
	for f := k.all.Front(); f != nil; f = f.Next() {
		runs = append(runs, f.Value.(*Run))
	}
	record := sinceRecord(nil, k.made.Unix()+k.forced+1)
	k.mu.Unlock()
	err := emit(record)
	for i := 0; err == nil && i < len(runs); i++ {
		if record = k.describe(record[:0], runs[i]); len(record) > 0 {
			err = emit(record)
		}
	}
	return err
}

// describe appends the record of a run, if there is one to be kept and it was not forgotten meanwhile.
func (k *Keys) describe(dst []byte, r *Run) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.runs[r.key] != r || !r.safe || len(r.answer.doc) > mostKept {
		return dst
	}
	return k.appendAnswer(dst, r)
}
