package spool

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/logfolder"
	"pgregory.net/rapid"
)

// aheadIn draws from which size on files have zeros behind their end.
func aheadIn(t *rapid.T) int64 { return rapid.SampledFrom([]int64{0, 1, 500}).Draw(t, "ahead") }

// zerosAhead returns the content of a segment with zeros behind its end, and how long it is without them.
func zerosAhead(t testing.TB) (files *memory, name string, end int, want []Frame) {
	t.Helper()
	files = newMemory()
	s := start(t, files, Config{ahead: 1}, nil)
	for i := range 3 {
		f := frame(0, uint64(3*i+1), 3, 400)
		f.Payload = append(f.Payload, 0, 0, 0) // that are not ahead
		want = append(want, f)
		end += headerSize + len(f.Payload)
		s.add(f)
	}
	_ = s.stop()
	name = files.names("0")[0]
	if content := files.Content(name); len(content) <= end || !bytes.Equal(content[end:], make([]byte, len(content)-end)) {
		t.Fatalf("%d bytes behind the last record", len(content)-end)
	}
	return files, name, end, want
}

// Frames that fit into the zeros behind the end of a file leave it as long as it is.
func TestFramesOverwriteZeros(t *testing.T) {
	files := newMemory()
	s := start(t, files, Config{ahead: 1}, nil)
	s.add(frame(0, 1, 1, 10_000))
	size := len(files.Content(files.names("0")[0]))
	var want []Frame
	for i := range uint64(20) {
		want = append(want, frame(0, 2+i, 1, 200))
		s.add(want[i])
	}
	if n := len(files.Content(files.names("0")[0])); n != size {
		t.Errorf("it grew from %d to %d bytes", size, n)
	}
	same(t, all(t, s.Spool, 0)[1:], want)
}

// Zeros behind the end are no damage, and what a crash has left in them is the end that was cut off.
func TestF2ZerosAheadAreNoDamage(t *testing.T) {
	files, name, end, want := zerosAhead(t)
	if err := Examine(files, nil, func(d Damage) error { return fmt.Errorf("damage: %v", d) }); err != nil {
		t.Error(err)
	}
	content := files.Content(name)
	if n := survivors(t, files, name, content, want); n != len(want) {
		t.Errorf("%d frames, want %d", n, len(want))
	}
	next := frame(0, 10, 3, 400)
	record := appendRecord(nil, &next, 1, time.Unix(1, 0))
	for _, written := range []int{1, headerSize - 1, headerSize, headerSize + 100, len(record)} { // with a salt that is not the segment's
		torn := bytes.Clone(content)
		copy(torn[end:], record[:written])
		m := newMemory()
		m.Put(name, torn)
		s, err := New(Config{}, Deps{Files: m})
		if err != nil {
			t.Fatal(err)
		}
		same(t, all(t, s, 0), want)
		if s.stats.Torn != int64(written) || s.stats.Damaged > 0 {
			t.Errorf("%d bytes: %+v", written, s.stats)
		}
		if aside := m.names(logfolder.Quarantine); len(aside) != 1 || !bytes.Equal(m.Content(aside[0]), record[:written]) {
			t.Errorf("%d bytes: %v in quarantine", written, aside)
		}
	}
}

// A payload of which only the beginning came to the disk is cut off, though zeros follow it.
func TestF2APayloadThatEndsInZerosAhead(t *testing.T) {
	files, name, end, want := zerosAhead(t)
	content := files.Content(name)
	clear(content[end-200:])
	m := newMemory()
	m.Put(name, content)
	s, err := New(Config{}, Deps{Files: m})
	if err != nil {
		t.Fatal(err)
	}
	same(t, all(t, s, 0), want[:2])
	if s.stats.Torn == 0 || s.stats.Damaged > 0 {
		t.Errorf("%+v", s.stats)
	}
}

// So it is also at later starts, when there are newer segments: its events were promised to nobody, and are not told as lost.
func TestF2APayloadThatEndsInZerosAheadOfAnOlderSegment(t *testing.T) {
	files, name, end, want := zerosAhead(t)
	content := files.Content(name)
	clear(content[end-200:])
	number, salt, _ := parseSegmentName(name)
	next := frame(1, 1, 1, 100)
	m := newMemory()
	m.Put(name, content)
	m.Put(segmentName(number+1, salt), appendRecord(nil, &next, salt, time.Unix(1, 0)))
	s, err := New(Config{}, Deps{Files: m})
	if err != nil {
		t.Fatal(err)
	}
	same(t, all(t, s, 0), want[:2])
	same(t, all(t, s, 1), []Frame{next})
	if s.stats.Torn == 0 || s.stats.Damaged > 0 || s.stats.Lost > 0 {
		t.Errorf("%+v", s.stats)
	}
}
