package spool

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/headgate-io/headgate/internal/failpoint"
)

// cursor is a table of how far each lane has come, in two slots that are written in turn: a crash in the middle of a
// write leaves the other one. It is only a hint, written without a sync: an old one has frames sent again, which the
// backend recognises or finds marked by their numbers.
type cursor struct {
	mu     sync.Mutex
	file   File // nil: it can't be written, which costs repetitions and nothing else
	writes uint64
	lanes  places
	slot   [slotSize]byte
}

// places has per lane the last confirmed number and the last of the run in flight.
type places [maxPartitions]struct{ confirmed, sending uint64 }

const (
	cursorName = "cursor"
	slotSize   = 8192
	slotUsed   = 16 + 16*maxPartitions // marker, number of the write, lanes; its checksum follows
)

var cursorMarker = [8]byte{0xf5, 'H', 'G', 'C', 'U', 'R', '0', '1'}

// openCursor reads the newer of the two slots that are sound.
func openCursor(files Files, size int64, exists bool) (*cursor, error) {
	c := &cursor{}
	file, err := files.Open(cursorName, !exists)
	if err != nil {
		return c, fmt.Errorf("open cursor: %w", err)
	}
	c.file = file
	c.writes, c.lanes = readCursor(file, size)
	return c, nil
}

func readCursor(r io.ReaderAt, size int64) (writes uint64, lanes places) {
	var raw [slotSize]byte
	for slot := range int64(2) {
		if n, _ := r.ReadAt(raw[:], slot*slotSize); n < slotUsed+4 || (slot+1)*slotSize > size {
			continue
		}
		sum := binary.LittleEndian.Uint32(raw[slotUsed:])
		n := binary.LittleEndian.Uint64(raw[8:])
		if [8]byte(raw[:]) != cursorMarker || sum != crc32.Checksum(raw[:slotUsed], castagnoli) || n <= writes {
			continue
		}
		writes = n
		for p := range lanes {
			lanes[p].confirmed = binary.LittleEndian.Uint64(raw[16+16*p:])
			lanes[p].sending = binary.LittleEndian.Uint64(raw[24+16*p:])
		}
	}
	return writes, lanes
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

// write writes the table into the slot that was not written last; c.mu is held.
func (c *cursor) write() error {
	if c.file == nil {
		return nil
	}
	c.writes++
	raw := c.slot[:]
	copy(raw, cursorMarker[:])
	binary.LittleEndian.PutUint64(raw[8:], c.writes)
	for p, l := range c.lanes {
		binary.LittleEndian.PutUint64(raw[16+16*p:], l.confirmed)
		binary.LittleEndian.PutUint64(raw[24+16*p:], l.sending)
	}
	binary.LittleEndian.PutUint32(raw[slotUsed:], crc32.Checksum(raw[:slotUsed], castagnoli))
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
