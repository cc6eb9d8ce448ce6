package spool

import (
	"math"
	"testing"
)

// While one asks for the first time how much the disk has, others are not told that it has nothing.
func TestSpaceIsNotFullBeforeItIsKnown(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	p := NewSpace(0, 100, func() (int64, error) {
		close(asked)
		<-answer
		return 99, nil
	})
	first := make(chan string)
	go func() { first <- p.full(0) }()
	<-asked
	if why := p.full(0); why != "" {
		t.Errorf("full before anybody knows: %s", why)
	}
	close(answer)
	if why := <-first; why == "" {
		t.Error("99 bytes are left of 100 that are to stay free, and it is not full")
	}
}

// What the spools write is counted before the disk is asked again, and what waits to be written too: the reserve stays free
// however fast they are.
func TestF08TheReserveStaysFreeBetweenTwoLooksAtTheDisk(t *testing.T) {
	asked := 0
	p := NewSpace(0, 1000, func() (int64, error) { asked++; return 10_000, nil })
	waiting := int64(0)
	p.Count(func() int64 { return waiting })
	if why := p.full(0); why != "" || asked != 1 {
		t.Fatalf("asked %d times: %s", asked, why)
	}
	p.checked.Store(math.MaxInt64) // nobody asks again
	p.written.Add(8000)
	if why := p.full(0); why != "" {
		t.Errorf("2000 bytes are left: %s", why)
	}
	waiting = 1001
	if p.full(0) == "" {
		t.Error("999 bytes will be left when what waits is written, and it is not full")
	}
	waiting = 0
	p.written.Add(1001)
	if p.full(0) == "" {
		t.Error("999 bytes are left, and it is not full")
	}
	p.checked.Store(0)
	if why := p.full(0); why != "" || asked != 2 {
		t.Errorf("the disk, asked %d times, says that it has room: %s", asked, why)
	}
}

// A spool counts what it writes, before it says that it is written.
func TestF08WhatASpoolWritesCountsAtOnce(t *testing.T) {
	p := NewSpace(0, 1000, func() (int64, error) { return 3000, nil })
	if why := p.full(0); why != "" {
		t.Fatal(why)
	}
	p.checked.Store(math.MaxInt64) // nobody asks again
	s := start(t, newMemory(), Config{}, p)
	s.add(frame(0, 1, 1, 1500))
	if why := p.full(0); why != "" {
		t.Errorf("about 1400 bytes are left: %s", why)
	}
	s.add(frame(0, 2, 1, 500))
	if p.full(0) == "" {
		t.Error("less than 1000 bytes are left, and it is not full")
	}
}
