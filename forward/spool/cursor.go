package spool

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/headgate-io/headgate/internal/failpoint"
)

// cursor is a table of how far each lane has come and of what its files should hold, in two slots that are written in turn: a
// crash in the middle of a write leaves the other one. It is mostly written without a sync: an old one has frames sent
// again, which the backend recognises or finds marked by their numbers, and expects less of the files than they hold.
type cursor struct {
	mu     sync.Mutex
	file   File // nil: it can't be written, which costs repetitions and nothing else
	writes uint64
	ledger
	slot [slotSize]byte
}

// ledger is what the cursor says.
type ledger struct {
	lanes          places
	oldest, newest uint64 // numbers of the segments that there should be; 0: not known
	ends           []end  // of those segments that may hold more than was counted
	old            bool   // of a format without ends: all that is found counts
}

// end is up to where a segment was counted. What is behind was acknowledged to nobody: the process was killed before it had
// noted it, or the sync failed and it was written again to another file.
type end struct {
	segment uint64
	size    int64
}

// mostEnds bounds those of files that a write failed on. Of more than that many, the oldest may hide a loss.
const mostEnds = 256

// end returns up to where the segment of that number was counted.
func (l *ledger) end(segment uint64) int64 {
	if !l.old && segment > l.newest {
		return 0
	}
	for _, e := range l.ends {
		if e.segment == segment {
			return e.size
		}
	}
	return math.MaxInt64
}

// setEnd notes up to where a segment is counted now.
func (l *ledger) setEnd(segment uint64, size int64) {
	l.ends = slices.DeleteFunc(l.ends, func(e end) bool { return e.segment == segment || e.segment < l.oldest })
	if l.ends = append(l.ends, end{segment, size}); len(l.ends) > mostEnds {
		l.ends = slices.Delete(l.ends, 0, 1)
	}
}

// places has a place for each lane.
type places [maxPartitions]place

// place is how far a lane has come.
type place struct {
	confirmed, sending uint64 // last confirmed number, and the last of the run in flight
	written            uint64 // last number that was synced
	// events is how many events were ever synced, and before how many of them were in segments that are removed: the
	// files hold the difference, or some were lost. A frame that is written again counts again.
	events, before uint64
}

const (
	cursorName = "cursor"
	slotSize   = 16384
	slotHead   = 40 // marker, number of the write, oldest, newest, lanes, ends
	slotPlace  = 40
	slotEnd    = 16

	slotHead2 = 36 // of the second version, which had no ends

	// Of the first version, which had the first two columns only.
	slotSize1 = 8192
	slotUsed1 = 16 + 16*maxPartitions
)

var (
	cursorMarker1 = [8]byte{0xf5, 'H', 'G', 'C', 'U', 'R', '0', '1'}
	cursorMarker2 = [8]byte{0xf5, 'H', 'G', 'C', 'U', 'R', '0', '2'}
	cursorMarker  = [8]byte{0xf5, 'H', 'G', 'C', 'U', 'R', '0', '3'}
)

// openCursor reads the newer of the two slots that are sound.
func openCursor(files Files, size int64, exists bool) (*cursor, error) {
	c := &cursor{}
	file, err := files.Open(cursorName, !exists)
	if err != nil {
		return c, fmt.Errorf("open cursor: %w", err)
	}
	c.file = file
	c.writes, c.ledger = readCursor(file, size)
	return c, nil
}

func readCursor(r io.ReaderAt, size int64) (writes uint64, l ledger) {
	raw := make([]byte, slotSize)
	for slot := range int64(2) {
		n, _ := r.ReadAt(raw, slot*slotSize)
		writes = max(writes, parseSlot(raw[:n], writes, &l))
	}
	if writes > 0 {
		return writes, l
	}
	for slot := range int64(2) {
		n, _ := r.ReadAt(raw[:slotSize1], slot*slotSize1)
		if (slot+1)*slotSize1 <= size {
			writes = max(writes, parseSlot1(raw[:n], writes, &l.lanes))
		}
	}
	l.old = true
	return writes, l
}

// parseSlot reads a slot into l, if it is sound and newer than after, and returns the number of its write, else 0.
func parseSlot(raw []byte, after uint64, l *ledger) uint64 {
	le := binary.LittleEndian
	head, ends := slotHead2, 0
	switch {
	case len(raw) < slotHead:
		return 0
	case [8]byte(raw) == cursorMarker:
		head, ends = slotHead, int(le.Uint32(raw[36:]))
	case [8]byte(raw) != cursorMarker2:
		return 0
	}
	writes, lanes := le.Uint64(raw[8:]), int(le.Uint32(raw[32:]))
	if lanes > maxPartitions || ends > mostEnds {
		return 0
	}
	at := head + slotPlace*lanes
	last := at + slotEnd*ends
	if len(raw) < last+4 || le.Uint32(raw[last:]) != crc32.Checksum(raw[:last], castagnoli) || writes <= after {
		return 0
	}
	*l = ledger{oldest: le.Uint64(raw[16:]), newest: le.Uint64(raw[24:]), old: head == slotHead2}
	for p := range lanes {
		at := raw[head+slotPlace*p:]
		l.lanes[p] = place{le.Uint64(at), le.Uint64(at[8:]), le.Uint64(at[16:]), le.Uint64(at[24:]), le.Uint64(at[32:])}
	}
	for ; at < last; at += slotEnd {
		l.ends = append(l.ends, end{le.Uint64(raw[at:]), int64(le.Uint64(raw[at+8:]))})
	}
	return writes
}

func parseSlot1(raw []byte, after uint64, lanes *places) uint64 {
	if len(raw) < slotUsed1+4 {
		return 0
	}
	sum := binary.LittleEndian.Uint32(raw[slotUsed1:])
	writes := binary.LittleEndian.Uint64(raw[8:])
	if [8]byte(raw) != cursorMarker1 || sum != crc32.Checksum(raw[:slotUsed1], castagnoli) || writes <= after {
		return 0
	}
	for p := range lanes {
		lanes[p].confirmed = binary.LittleEndian.Uint64(raw[16+16*p:])
		lanes[p].sending = binary.LittleEndian.Uint64(raw[24+16*p:])
	}
	return writes
}

// set notes how far a lane has come: neither number ever goes back, and 0 says nothing of one.
func (c *cursor) set(partition int32, confirmed, sending uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &c.lanes[partition]
	if confirmed <= l.confirmed && sending <= l.sending {
		return nil
	}
	l.confirmed, l.sending = max(confirmed, l.confirmed), max(sending, l.sending)
	return c.write()
}

// wrote notes frames that were synced in the segment, which ends at size now. Confirmed says by partition what the backend has:
// frames before these were left out of the files, because it had them.
func (c *cursor) wrote(seg *segment, size int64, frames []placed, confirmed *[maxPartitions]uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range frames {
		f := &frames[i]
		l := &c.lanes[f.partition]
		l.written = max(l.written, f.last())
		l.confirmed = max(l.confirmed, min(confirmed[f.partition], l.written))
		l.events += uint64(f.events)
		seg.events.add(f.partition, uint64(f.events))
	}
	if c.oldest == 0 {
		c.oldest = seg.number
	}
	c.newest = max(c.newest, seg.number)
	c.setEnd(seg.number, size)
	return c.write()
}

// whole notes that nothing was written to a segment but what is counted, and nothing will be.
func (c *cursor) whole(segment uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = slices.DeleteFunc(c.ends, func(e end) bool { return e.segment == segment })
}

// removed notes, for good, that a segment is no more expected, before it goes; oldest is the number of the first that is.
func (c *cursor) removed(seg *segment, oldest uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p, n := range seg.events {
		c.lanes[p].before += n
	}
	seg.events = nil
	c.oldest = max(c.oldest, oldest)
	if c.file == nil {
		return nil
	}
	if err := c.write(); err != nil {
		return err
	}
	return c.file.Sync()
}

// expect makes what the segments hold what they should hold.
func (c *cursor) expect(segments []*segment) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.lanes {
		c.lanes[p].events, c.lanes[p].before = 0, 0
	}
	c.oldest, c.newest, c.ends, c.old = 0, 0, nil, false
	for i, seg := range segments {
		if i == 0 {
			c.oldest = seg.number
		}
		c.newest = max(c.newest, seg.number)
		for p, n := range seg.events {
			c.lanes[p].events += n
		}
	}
	return c.write()
}

// write writes the table into the slot that was not written last; c.mu is held.
func (c *cursor) write() error {
	if c.file == nil {
		return nil
	}
	c.writes++
	lanes := len(c.lanes)
	for lanes > 0 && c.lanes[lanes-1] == (place{}) {
		lanes--
	}
	raw := append(c.slot[:0], cursorMarker[:]...)
	le := binary.LittleEndian
	raw = le.AppendUint64(raw, c.writes)
	raw = le.AppendUint64(raw, c.oldest)
	raw = le.AppendUint64(raw, c.newest)
	raw = le.AppendUint32(raw, uint32(lanes))
	raw = le.AppendUint32(raw, uint32(len(c.ends)))
	for p := range lanes {
		l := &c.lanes[p]
		for _, n := range [...]uint64{l.confirmed, l.sending, l.written, l.events, l.before} {
			raw = le.AppendUint64(raw, n)
		}
	}
	for _, e := range c.ends {
		raw = le.AppendUint64(le.AppendUint64(raw, e.segment), uint64(e.size))
	}
	raw = le.AppendUint32(raw, crc32.Checksum(raw, castagnoli))
	_, err := c.file.WriteAt(raw, int64(c.writes%2)*slotSize)
	failpoint.Pass(failpoint.Cursor)
	return err
}

// close makes what was written last and closes the file.
func (c *cursor) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil
	}
	err := c.file.Sync()
	if e := c.file.Close(); err == nil {
		err = e
	}
	c.file = nil
	return err
}
