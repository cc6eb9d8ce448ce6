package journal

import (
	"errors"
	"fmt"

	"github.com/headgate-io/headgate/internal/logfolder"
)

// replace begins a new log, says in a snapshot all that the owner holds, and removes what was there before. A crash in
// between leaves more than is needed: the new log is read behind the old one and behind what there is of the snapshot.
func (j *Journal) replace() error {
	before, number, gap, err := j.turn()
	var written logfolder.Info
	if err == nil {
		written, err = j.snapshot(number)
	}
	if err != nil {
		j.writing.Lock()
		defer j.writing.Unlock()
		j.gap = j.gap || gap
		j.fail(err)
		return err
	}
	j.writing.Lock()
	j.old, j.base = append(j.old, written), written.Size
	j.writing.Unlock()
	j.bytes.Add(written.Size)
	for _, info := range before {
		if err := j.files.Remove(info.Name); err != nil {
			return fmt.Errorf("remove what was replaced: %w", err)
		}
		j.bytes.Add(-info.Size)
		j.writing.Lock()
		j.old = j.old[1:]
		j.writing.Unlock()
	}
	return nil
}

// turn begins a new log, and returns the files that a snapshot with that number is to replace, and whether they had a gap.
func (j *Journal) turn() (before []logfolder.Info, number uint64, gap bool, err error) {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.write()
	if j.file != nil {
		_ = j.file.Close() // whatever it has will be said again
		j.old = append(j.old, j.current)
		j.file = nil
	}
	before = append(before, j.old...)
	j.number++ // the snapshot's
	number, gap = j.number, j.gap
	if err = j.begin(); err == nil {
		j.gap = false // what fails from here on is another one
	}
	return before, number, gap, err
}

// snapshotBuffer is written at a time.
const snapshotBuffer = 256 << 10

// snapshot writes all that the owner holds, and makes it last.
func (j *Journal) snapshot(number uint64) (info logfolder.Info, err error) {
	info.Name = fileName(number, j.salt, kindSnapshot)
	file, err := j.files.Open(info.Name, true)
	if err != nil {
		return info, fmt.Errorf("begin a snapshot: %w", err)
	}
	buf := make([]byte, 0, snapshotBuffer+4096)
	flush := func() error {
		_, err := file.WriteAt(buf, info.Size)
		info.Size += int64(len(buf))
		buf = buf[:0]
		return err
	}
	err = j.all(func(record []byte) error {
		if buf = appendRecord(buf, record, j.salt); len(buf) < snapshotBuffer {
			return nil
		}
		return flush()
	})
	if err == nil {
		buf = appendRecord(buf, nil, j.salt)
		err = flush()
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return info, errors.Join(fmt.Errorf("write a snapshot: %w", err), j.files.Remove(info.Name))
	}
	return info, nil
}
