package spool

import (
	"testing"
	"time"
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

// What is written counts at once, and not only when the disk is asked again.
func TestSpaceCountsWhatIsWrittenSince(t *testing.T) {
	p := NewSpace(0, 100, func() (int64, error) { return 150, nil })
	if why := p.full(0); why != "" {
		t.Fatal(why)
	}
	p.checked.Add(int64(time.Hour)) // it is not asked again
	p.used.Add(50)
	if why := p.full(0); why != "" {
		t.Errorf("full with what is to stay free: %s", why)
	}
	p.used.Add(1)
	if p.full(0) == "" {
		t.Error("99 bytes are left of 100 that are to stay free, and it is not full")
	}
	p.used.Add(-60)
	if why := p.full(0); why != "" {
		t.Errorf("full after some was removed: %s", why)
	}
}
