package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/headgate-io/headgate/internal/logfolder"
)

// Deps is what a journal uses and others own.
type Deps struct {
	Files    Files
	Snapshot Snapshot
	Log      *slog.Logger // nil: nothing is logged
}

// Open reads the journal in its files: read is called with each record, in the order in which they were appended, those of
// a snapshot before what was appended since it was begun, perhaps some twice, and nothing of before a whole snapshot. A record is lent. Damage is passed over and
// set aside; whole says that there was none. The error is that of a folder that can't be read: then the journal begins anew
// and may be used all the same.
func Open(deps Deps, read func(record []byte)) (j *Journal, whole bool, err error) {
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	j = &Journal{files: deps.Files, all: deps.Snapshot, log: deps.Log, salt: rand.Uint32(), dirty: make(chan struct{}, 1)}
	infos, err := j.files.List()
	if err != nil {
		j.number = uint64(time.Now().UnixNano()) // behind all that is there unseen, which counted from 1 or from earlier
		return j, false, fmt.Errorf("open journal: %w", err)
	}
	for _, i := range infos {
		if number, _, _, ok := parseName(i.Name); ok {
			j.old = append(j.old, i)
			j.number = max(j.number, number)
		}
	}
	slices.SortFunc(j.old, func(a, b logfolder.Info) int { return strings.Compare(a.Name, b.Name) })
	whole = true
	stale := j.superseded()
	kept := j.removeStale(j.old[:stale])
	for i, info := range j.old[stale:] {
		f, err := j.readFile(info, read, j.setAside)
		if err != nil { // perhaps it can be read at the next start: this process leaves it
			j.log.Error("a file of what is remembered of repetitions can't be read: what it has is forgotten", "file", info.Name, "error", err)
			whole = false
			continue
		}
		kept = append(kept, info)
		j.bytes.Add(info.Size)
		j.gap = j.gap || f.torn || f.damaged
		if strings.HasSuffix(info.Name, kindSnapshot) {
			j.base = info.Size
			f.damaged = f.damaged || i == 0 && !f.ended // there is nothing that it was to replace
		}
		whole = whole && !f.damaged
	}
	if j.old = kept; j.tooLong() {
		j.wake()
	}
	return j, whole, nil
}

// readBuffer has room for the largest record.
const readBuffer = headerSize + MaxRecord

// reading is how a file was found.
type reading struct {
	damaged bool // in the middle
	torn    bool // its end was cut off, as a crash does
	ended   bool // the last record is empty
}

// readFile reads one file; damage is told of each range in its middle that is no record.
func (j *Journal) readFile(info logfolder.Info, read func([]byte), damage func(from logfolder.File, name string, off, end int64)) (f reading, err error) {
	file, err := j.files.Open(info.Name, false)
	if err != nil {
		return f, err
	}
	defer file.Close()
	_, salt, kind, _ := parseName(info.Name)
	r := bufio.NewReaderSize(io.NewSectionReader(file, 0, info.Size), int(min(info.Size, readBuffer)))
	for off := int64(0); off < info.Size; {
		record, ok, err := next(r, salt)
		if err != nil {
			return f, err
		}
		if ok {
			if f.ended = len(record) == 0; !f.ended {
				read(record)
			}
			n, _ := r.Discard(headerSize + len(record))
			off += int64(n)
			continue
		}
		end, err := resync(r, off, salt)
		if err != nil {
			return f, err
		}
		switch {
		case end < info.Size:
			f.damaged = true
			damage(file, info.Name, off, end)
		case kind == kindLog:
			f.torn = true
			j.log.Info("the end of what is remembered of repetitions was cut off by a crash", "file", info.Name, "bytes", end-off)
		}
		off = end
	}
	return f, nil
}

// next returns a view of the record that r is at; ok is false when there is none.
func next(r *bufio.Reader, salt uint32) (record []byte, ok bool, err error) {
	raw, err := r.Peek(headerSize)
	if len(raw) < headerSize {
		return nil, false, notEOF(err)
	}
	size := binary.LittleEndian.Uint32(raw[4:])
	if [4]byte(raw) != marker || size > MaxRecord || headerSize+int(size) > r.Size() {
		return nil, false, nil
	}
	raw, err = r.Peek(headerSize + int(size))
	if len(raw) < headerSize+int(size) {
		return nil, false, notEOF(err)
	}
	record = raw[headerSize:]
	return record, sum(raw[4:8], record, salt) == binary.LittleEndian.Uint32(raw[8:]), nil
}

// resync takes r behind damage that begins at off, and returns where that is.
func resync(r *bufio.Reader, off int64, salt uint32) (end int64, err error) {
	for skip := 1; ; {
		n, err := r.Discard(skip)
		off += int64(n)
		if err != nil {
			return off, notEOF(err)
		}
		raw, err := r.Peek(r.Size())
		if notEOF(err) != nil {
			return off, err
		}
		switch i := bytes.Index(raw, marker[:]); {
		case len(raw) == 0:
			return off, nil
		case i < 0:
			skip = max(len(raw)-len(marker)+1, 1)
		case i > 0:
			skip = i
		default:
			if _, ok, err := next(r, salt); ok || err != nil {
				return off, err
			}
			skip = 1
		}
	}
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// setAside copies a damaged range to the quarantine, unless it is there from an earlier start.
func (j *Journal) setAside(from logfolder.File, name string, off, end int64) {
	j.damaged++
	to, err := j.files.Open(fmt.Sprintf("%s/%s-%d", logfolder.Quarantine, name, off), true)
	if errors.Is(err, fs.ErrExist) {
		return
	}
	if err == nil {
		_, err = io.Copy(io.NewOffsetWriter(to, 0), io.NewSectionReader(from, off, end-off))
		err = errors.Join(err, to.Sync(), to.Close())
	}
	j.log.Error("a part of what is remembered of repetitions is damaged: it is set aside in the quarantine, and forgotten", "file", name,
		"offset", off, "bytes", end-off, "error", err)
}
