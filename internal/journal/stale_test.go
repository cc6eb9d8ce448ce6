package journal

import (
	"errors"
	"maps"
	"testing"

	"github.com/headgate-io/headgate/internal/logfolder"
	"github.com/headgate-io/headgate/internal/memdisk"
)

// M03: a power cut, or a disk that removes nothing, comes between a snapshot and the removal of what it replaced. What had been
// taken back stays so, though the cut took the record that said it.
func TestM03WhatASnapshotReplacedIsNotRead(t *testing.T) {
	files := memdisk.New()
	o := open(t, files, 0)
	o.put(1)
	o.put(2)
	if o.Flush(); o.Sync() != nil {
		t.Fatal("the disk works")
	}
	o.take(1)
	left := 5 // the record is written; the next log; a snapshot is made, written and synced
	files.Fail(func(int) error {
		if left--; left < 0 {
			return memdisk.ErrDisk
		}
		return nil
	})
	if err := o.replace(); !errors.Is(err, memdisk.ErrDisk) || len(files.Names(kindSnapshot)) != 1 || len(files.Names(kindLog)) != 2 {
		t.Fatalf("the old log was to stay: %v, %v", err, files.Names(""))
	}
	cut := files.PowerCut(func(int) int { return 1 })
	if again := open(t, cut, 0); !maps.Equal(again.holds, map[uint32]bool{2: true}) || !again.whole {
		t.Errorf("%v is held, whole %v", again.holds, again.whole)
	}
	if len(cut.Names("")) != 2 {
		t.Errorf("of what was replaced there is still something: %v", cut.Names(""))
	}
}

// unlisted is a folder that can't be read once.
type unlisted struct {
	*memdisk.Memory
	refused bool
}

func (u *unlisted) List() ([]logfolder.Info, error) {
	if !u.refused {
		u.refused = true
		return nil, memdisk.ErrDisk
	}
	return u.Memory.List()
}

// M03: what a process wrote that could not read the folder comes behind what it did not see.
func TestM03AFolderThatCouldNotBeRead(t *testing.T) {
	files := memdisk.New()
	for n := range uint32(3) { // the numbers of files go up
		o := open(t, files, 0)
		o.put(n)
		if err := o.close(); err != nil {
			t.Fatal(err)
		}
	}
	o := &owner{holds: map[uint32]bool{}}
	j, whole, err := Open(Deps{Files: &unlisted{Memory: files}, Snapshot: o.snapshot}, nil)
	if err == nil || whole {
		t.Fatal("the folder can't be read")
	}
	o.Journal = j
	o.take(2)
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
	if again := open(t, files, 0); again.holds[2] || !again.holds[0] {
		t.Errorf("held are %v", again.holds)
	}
}
