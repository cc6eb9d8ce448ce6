package spool

import "testing"

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
