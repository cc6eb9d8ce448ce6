package spool

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/headgate-io/headgate/internal/memdisk"
)

// bounds opens a spool, and returns what it knows of the first partition's numbers.
func bounds(t *testing.T, files *memory) (*Spool, uint64) {
	t.Helper()
	s, err := New(Config{}, Deps{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	return s, s.Backlog(0).Bound
}

// F02, F05, M03: numbers that were reserved are known behind a power cut at any operation; those whose sync failed are not
// given, and nothing that was reserved before is forgotten for that.
func TestF2ReservedNumbersSurvive(t *testing.T) {
	for ops := range 12 {
		files, given := newMemory(), uint64(0)
		left := ops + 3 // a spool makes its cursor first
		files.Fail(func(int) error {
			if left--; left < 0 {
				return memdisk.ErrDisk
			}
			return nil
		})
		if s, err := New(Config{}, Deps{Files: files}); err == nil {
			for last := uint64(10); last < 6*numbersStep; last += numbersStep {
				if bound, err := s.Reserve(0, last); err == nil {
					if given = bound; bound < last {
						t.Fatalf("asked for %d and got %d", last, bound)
					}
				}
			}
		}
		for seed := range uint64(20) {
			if _, known := bounds(t, files.crash(rand.New(rand.NewPCG(seed, 1)).IntN)); known < given {
				t.Fatalf("after %d operations %d numbers were given, and %d are known", ops, given, known)
			}
		}
	}
}

// M11: a damaged file of numbers is one that knows less, or nothing; never more than was reserved, and it is used again.
func TestM11NumbersDamaged(t *testing.T) {
	files := newMemory()
	s, known := bounds(t, files)
	if known != 0 {
		t.Fatalf("at first %d", known)
	}
	first, _ := s.Reserve(0, 1)
	second, err := s.Reserve(0, first+1)
	if err != nil || second <= first {
		t.Fatal(first, second, err)
	}
	if _, err := s.Reserve(0, second); err != nil || s.numbers.writes != 2 {
		t.Error("what is reserved is reserved again")
	}
	content := files.Content(numbersName)
	for _, at := range []int{0, 9, 17, numbersUsed, numbersSlot, numbersSlot + 9, numbersSlot + 16, numbersSlot + numbersUsed + 3} {
		damaged := bytes.Clone(content)
		damaged[at] ^= 1
		m := newMemory()
		m.Put(numbersName, damaged)
		again, known := bounds(t, m)
		if known != first && known != second {
			t.Errorf("byte %d: %d, want %d or %d", at, known, first, second)
		}
		if b, err := again.Reserve(0, known+5); err != nil || b < known+5 {
			t.Errorf("byte %d: %d %v", at, b, err)
		}
	}
	for _, size := range []int{0, 1, numbersUsed, numbersSlot + 5} {
		m := newMemory()
		m.Put(numbersName, content[:size])
		if _, known := bounds(t, m); known != 0 && known != second {
			t.Errorf("%d bytes: %d", size, known)
		}
	}
}

// A lane that is known to have gone further than the file says was written by a program that reserves nothing.
func TestBoundBehindTheFramesIsNotBelieved(t *testing.T) {
	files := newMemory()
	s := start(t, files, Config{}, nil)
	if _, err := s.Reserve(0, 5); err != nil {
		t.Fatal(err)
	}
	s.add(frame(0, 3*numbersStep, 2, 10))
	_ = s.stop()
	if _, known := bounds(t, files); known != 0 {
		t.Errorf("%d is believed", known)
	}
}
