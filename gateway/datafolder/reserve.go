package datafolder

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A start on a disk without a free byte has to write a little before it can deliver what fills the disk: its stores make
// and replace small files. So a file is kept that is nothing but room, and given up at a start that finds the disk full.
const (
	reserveName = "reserve"
	// mostKept is the size of that file; a 32nd of the disk where that is less.
	mostKept = 4 << 20
	// reserveParts is how many starts it is for at least, should others fill the disk after each: one writes some 16 KiB, and what it
	// leaves is taken back by half.
	reserveParts = 32
	// leastPart is what one is given of a small file.
	leastPart = 64 << 10
	// keepEvery is how often it is looked whether the file is whole.
	keepEvery = 2 * time.Second
)

// giveReserve makes some room when the disk is full: of the file a part alone, since somebody else may take what is given before
// the next start, which must have some too. When nothing is left of it, what the stores make again goes.
func (f *Folder) giveReserve() {
	want, errSize := f.reserveBytes()
	free, errFree := f.Free()
	part := partOf(want)
	if errors.Join(errSize, errFree) != nil || free >= part {
		return
	}
	path := f.File(reserveName)
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		if left := info.Size() - part; left <= 0 || os.Truncate(path, left) != nil {
			os.Remove(path) // then the start says what is missing
		}
		return
	}
	for _, pattern := range []string{"plugin-cache/*", "*/jetstream/*/streams/*/msgs/index.db"} {
		paths, _ := filepath.Glob(filepath.Join(f.Path, pattern)) // a strange path of the folder costs this room
		for _, path := range paths {
			os.Remove(path)
		}
	}
}

// OrFull adds to an error of the start what to do about a full disk, if it is full.
func (f *Folder) OrFull(err error) error {
	want, errSize := f.reserveBytes()
	free, errFree := f.Free()
	if err == nil || errors.Join(errSize, errFree) != nil || free >= partOf(want) {
		return err
	}
	return fmt.Errorf("%w; the disk of %s is full: %d KiB are left, and %d KiB are needed to start. Make room, then start again; nothing is lost",
		err, f.Path, free>>10, partOf(want)>>10)
}

// partOf is what a start is given of a reserve of so many bytes.
func partOf(want int64) int64 { return max(want/reserveParts, leastPart) }

func (f *Folder) reserveBytes() (int64, error) {
	size, err := DiskBytes(f.Path)
	return min(mostKept, size/32), err
}

// KeepReserve makes the file, and makes it whole again, until ctx ends.
func (f *Folder) KeepReserve(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	warned := false
	for {
		err := f.growReserve()
		if err != nil && !warned {
			log.Warn("no room is kept for a start on a full disk; it is tried further on", "file", f.File(reserveName), "error", err)
		}
		warned = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// growReserve adds to the file what it lacks, half of what is free at most: the rest may be needed at once.
func (f *Folder) growReserve() error {
	want, err := f.reserveBytes()
	if err != nil {
		return err
	}
	info, err := os.Stat(f.File(reserveName))
	have := int64(0)
	if err == nil {
		have = info.Size()
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	free, err := f.Free()
	if err != nil || have >= want {
		return err
	}
	more := min(want-have, free/2)
	if more < 4096 {
		return syscall.ENOSPC
	}
	file, err := os.OpenFile(f.File(reserveName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if err = allocate(file, have, more); err != nil {
		_, err = io.CopyN(file, rand.Reader, more) // zeros may take no room, on some disks
	}
	return errors.Join(err, file.Close())
}
