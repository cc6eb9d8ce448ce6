// Package journal keeps over a restart what its owner holds in memory: each change as a record in a log, which is
// replaced by all that the owner still holds when it has become long.
package journal

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/internal/logfolder"
)

// Files is the folder of a journal.
type Files = logfolder.Files

// Snapshot calls emit with records that say all that the owner holds. It may be called while records are appended:
// what is appended meanwhile may be in it or not. emit copies the record.
type Snapshot func(emit func(record []byte) error) error

// Stats are figures of a journal.
type Stats struct {
	Bytes   int64  // of its files
	Failed  uint64 // writes and syncs that failed
	Damaged uint64 // ranges of bytes that were set aside at the start
}

// Journal is one log. Its methods may be called concurrently.
type Journal struct {
	files Files
	all   Snapshot
	log   *slog.Logger
	salt  uint32        // of the files that this process makes
	dirty chan struct{} // wakes Run: capacity 1

	appended atomic.Int64 // bytes in the life of the process, and of them
	written  atomic.Int64 // those that are in a file, or that a failure has taken
	failed   atomic.Uint64
	bytes    atomic.Int64
	damaged  uint64

	mu  sync.Mutex // guards buf; held for no I/O
	buf []byte     // appended and not written

	writing sync.Mutex       // guards the rest; held while something is written, taken before mu
	spare   []byte           // the other buf
	file    logfolder.File   // that is added to; nil: the next write makes one
	current logfolder.Info   // its name and size
	old     []logfolder.Info // all other files, oldest first
	number  uint64           // of the newest file
	base    int64            // bytes of the newest snapshot
	gap     bool             // the files have less than was appended, or damage: a snapshot is needed
}

const (
	pace      = 100 * time.Millisecond // between syncs: a power cut takes what was written since the last one
	longPause = 5 * time.Second        // before a disk that takes nothing is tried again, doubled each time up to
	mostPause = 5 * time.Minute
	slack     = 1 << 20   // by so much a log is longer than the snapshot before it, when it is replaced
	mostFiles = 8         // each process makes one at least
	mostBuf   = 256 << 10 // that wait to be written; more are written at once
)

// Append adds a record of at most MaxRecord bytes, which it copies. Nothing is waited for, unless much waits to be written.
func (j *Journal) Append(record []byte) {
	if len(record) > MaxRecord {
		panic("BUG: journal: a record is too large")
	}
	j.mu.Lock()
	before := len(j.buf)
	j.buf = appendRecord(j.buf, record, j.salt)
	j.appended.Add(int64(len(j.buf) - before))
	much := len(j.buf) > mostBuf
	j.mu.Unlock()
	if before == 0 {
		j.wake()
	}
	if much {
		j.Flush()
	}
}

func (j *Journal) wake() {
	select {
	case j.dirty <- struct{}{}:
	default:
	}
}

// Flush returns when what was appended survives the end of the process, or when the disk refused it: then the journal says
// it all anew as soon as it can, which is Run's work.
func (j *Journal) Flush() {
	mark := j.appended.Load()
	if j.written.Load() >= mark {
		return
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	if j.written.Load() < mark {
		j.write()
	}
}

// write writes what was appended; j.writing is held. What a failure takes is said again by the next snapshot.
func (j *Journal) write() {
	j.mu.Lock()
	buf := j.buf
	j.buf = j.spare[:0]
	mark := j.appended.Load()
	j.mu.Unlock()
	if j.spare = nil; cap(buf) <= 2*mostBuf {
		j.spare = buf
	}
	defer j.written.Store(mark)
	if len(buf) == 0 {
		return
	}
	err := j.begin()
	if err == nil {
		_, err = j.file.WriteAt(buf, j.current.Size)
	}
	if err != nil {
		j.fail(err)
		return
	}
	j.current.Size += int64(len(buf))
	j.bytes.Add(int64(len(buf)))
}

// begin makes the next file of the log, if there is none; j.writing is held.
func (j *Journal) begin() error {
	if j.file != nil {
		return nil
	}
	j.number++
	name := fileName(j.number, j.salt, kindLog)
	file, err := j.files.Open(name, true)
	if err != nil {
		return err
	}
	j.file, j.current = file, logfolder.Info{Name: name}
	return nil
}

// fail notes that the files do not have, or may not have, all that was appended; j.writing is held.
func (j *Journal) fail(err error) {
	j.failed.Add(1)
	if !j.gap {
		j.log.Error("what is remembered of repetitions could not be written: until it can, a restart makes the gateway forget some of it", "error", err)
	}
	j.gap = true
	j.wake()
}

// Sync returns when what was written before survives a power cut.
func (j *Journal) Sync() error {
	j.writing.Lock()
	file := j.file
	j.writing.Unlock()
	if file == nil {
		return nil
	}
	err := file.Sync()
	if err != nil {
		j.writing.Lock()
		defer j.writing.Unlock()
		j.fail(err)
	}
	return err
}

// Run syncs what is appended and replaces the log when it has become long, until ctx ends. Then everything is written,
// synced and closed. It is called once, and nothing is appended when it has returned.
func (j *Journal) Run(ctx context.Context) error {
	rest := time.NewTimer(0)
	defer rest.Stop()
	for pause := pace; ; {
		select {
		case <-ctx.Done():
			return j.close()
		case <-j.dirty:
		}
		if j.step() == nil {
			pause = pace
		} else {
			pause = min(max(2*pause, longPause), mostPause)
			j.wake()
		}
		rest.Reset(pause)
		select {
		case <-ctx.Done():
			return j.close()
		case <-rest.C:
		}
	}
}

// step makes last what there is.
func (j *Journal) step() error {
	j.Flush()
	if j.Sync() == nil && !j.tooLong() {
		return nil
	}
	return j.replace()
}

func (j *Journal) tooLong() bool {
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.gap || len(j.old) >= mostFiles || j.bytes.Load()-j.base > j.base+slack
}

func (j *Journal) close() error {
	err := j.step()
	j.writing.Lock()
	defer j.writing.Unlock()
	if j.file == nil {
		return err
	}
	if e := j.file.Close(); err == nil {
		err = e
	}
	return err
}

// Stats returns the figures of this moment.
func (j *Journal) Stats() Stats {
	return Stats{Bytes: j.bytes.Load(), Failed: j.failed.Load(), Damaged: j.damaged}
}
