package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"sync"
)

// numbers says of each lane up to which number any process may have gone, in two slots that are written in turn, each
// synced before a number of it is given: so a process that can't ask the backend where a lane ended goes on behind that.
// The frames and the cursor do not say it: what the backend had before the spool is in no file, and after a power cut the
// cursor is old.
type numbers struct {
	mu     sync.Mutex
	files  Files
	file   File // nil: there is none yet, or it is opened again
	writes uint64
	bounds [maxPartitions]uint64 // 0: not known
}

const (
	numbersName = "numbers"
	numbersSlot = 4096
	numbersUsed = 8 + 8 + 8*maxPartitions // marker, number of the write, bounds; a checksum follows

	// numbersStep is how far ahead numbers are reserved: a write and a sync for so many events of a lane, and the gap
	// that a start without its backend leaves.
	numbersStep = 1 << 20
)

var numbersMarker = [8]byte{0xf5, 'H', 'G', 'N', 'U', 'M', '0', '1'}

// openNumbers reads the newer of the two slots that are sound. What can't be read is not known.
func openNumbers(files Files) (*numbers, error) {
	n := &numbers{files: files}
	file, err := files.Open(numbersName, false)
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err != nil {
		return n, fmt.Errorf("open numbers: %w", err)
	}
	n.file = file
	var raw [numbersUsed + 4]byte
	for slot := range int64(2) {
		if got, err := file.ReadAt(raw[:], slot*numbersSlot); got < len(raw) && err != nil && !errors.Is(err, io.EOF) {
			return n, fmt.Errorf("read numbers: %w", err)
		} else if got == len(raw) {
			n.parse(raw[:])
		}
	}
	return n, nil
}

func (n *numbers) parse(raw []byte) {
	le := binary.LittleEndian
	writes := le.Uint64(raw[8:])
	if [8]byte(raw) != numbersMarker || le.Uint32(raw[numbersUsed:]) != crc32.Checksum(raw[:numbersUsed], castagnoli) || writes <= n.writes {
		return
	}
	n.writes = writes
	for p := range n.bounds {
		n.bounds[p] = le.Uint64(raw[16+8*p:])
	}
}

// reserve returns a number from last on up to which those of a lane may be given from now on.
func (n *numbers) reserve(partition int32, last uint64) (bound uint64, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last <= n.bounds[partition] {
		return n.bounds[partition], nil
	}
	if n.file == nil {
		if n.file, err = n.files.Open(numbersName, false); errors.Is(err, fs.ErrNotExist) {
			n.file, err = n.files.Open(numbersName, true)
		}
		if err != nil {
			n.file = nil
			return 0, fmt.Errorf("reserve numbers: %w", err)
		}
	}
	bound = last + numbersStep
	le := binary.LittleEndian
	raw := append(make([]byte, 0, numbersUsed+4), numbersMarker[:]...)
	raw = le.AppendUint64(raw, n.writes+1)
	for p, b := range n.bounds {
		if p == int(partition) {
			b = bound
		}
		raw = le.AppendUint64(raw, b)
	}
	raw = le.AppendUint32(raw, crc32.Checksum(raw, castagnoli))
	if _, err = n.file.WriteAt(raw, int64((n.writes+1)%2)*numbersSlot); err == nil {
		err = n.file.Sync()
	}
	if err != nil { // perhaps the file was removed
		err = fmt.Errorf("reserve numbers: %w", errors.Join(err, n.file.Close()))
		n.file = nil
		return 0, err
	}
	n.writes++
	n.bounds[partition] = bound
	return bound, nil
}

// bound returns up to which number a lane may have gone, 0 when that is not known: a lane that is known to have gone further
// was written by a program that reserves nothing.
func (n *numbers) bound(partition int32, known uint64) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if b := n.bounds[partition]; b >= known {
		return b
	}
	return 0
}

func (n *numbers) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.file == nil {
		return nil
	}
	err := n.file.Close()
	n.file = nil
	return err
}

// Reserve returns a number from last on: up to it, numbers of the partition may be given from now on. A process that finds its
// backend away goes on behind it.
func (s *Spool) Reserve(partition int32, last uint64) (bound uint64, err error) {
	return s.numbers.reserve(partition, last)
}
