package plugins

import (
	"slices"
	"sync"
	"time"
)

// seats bounds how many guests compute for long at the same time, and has the Go runtime make room for them. Compiled code keeps
// one of the runtime's processors as long as it computes, and the requests of other streams lack it. So a guest that computes
// for long has a seat, and for each seat that is taken the runtime has one processor more than usual: the cores are then shared
// out by the system, which can interrupt what it likes. A nil *seats holds nobody up.
type seats struct {
	all    int            // may be taken
	spread func(more int) // gives the runtime so many processors more than usual

	mu    sync.Mutex // guards the rest
	taken int
	line  []chan struct{} // who waits, in order, while all are taken; closed when the seat is theirs
	more  int             // what spread was told last
	empty *time.Timer     // runs while none is taken
}

const (
	seatWhenFree = 1 * time.Millisecond  // of computing in one call: from then on the guest has a seat if one is free
	seatAlways   = 4 * time.Millisecond  // and from then on it does not compute without
	seatTurn     = 10 * time.Millisecond // of computing on a seat that others wait for
	seatsKept    = 30 * time.Second      // none taken, until the runtime is as usual: changing it stops all goroutines for a moment
)

// newSeats leaves one core of so many to those who do not compute for long. Without spread there are none.
func newSeats(cores int, spread func(more int)) *seats {
	if spread == nil {
		return nil
	}
	s := &seats{all: max(1, cores-1), spread: spread}
	s.empty = time.AfterFunc(seatsKept, s.fold)
	s.empty.Stop()
	return s
}

// sit takes a seat if one is free.
func (s *seats) sit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sitLocked()
}

// sitLocked is sit for who holds mu.
func (s *seats) sitLocked() bool {
	if s.taken == s.all {
		return false
	}
	s.taken++
	s.empty.Stop()
	if s.taken > s.more {
		s.more = s.taken
		s.spread(s.more)
	}
	return true
}

// wait takes a seat when it is its turn, and gives up after so long, if that is not 0.
func (s *seats) wait(most time.Duration) bool {
	s.mu.Lock()
	if s.sitLocked() {
		s.mu.Unlock()
		return true
	}
	mine := make(chan struct{})
	s.line = append(s.line, mine)
	s.mu.Unlock()
	var end <-chan time.Time
	if most != 0 {
		end = time.After(most)
	}
	select {
	case <-mine:
		return true
	case <-end:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.line, mine)
	if i < 0 { // it was given one meanwhile
		return true
	}
	s.line = slices.Delete(s.line, i, i+1)
	return false
}

// asked reports whether somebody waits for a seat.
func (s *seats) asked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.line) > 0
}

// stand gives a seat to who waits longest for one, or back.
func (s *seats) stand() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.line) > 0 {
		close(s.line[0])
		s.line = slices.Delete(s.line, 0, 1)
		return
	}
	if s.taken--; s.taken == 0 {
		s.empty.Reset(seatsKept)
	}
}

// fold makes the runtime as usual when no seat has been taken for some time.
func (s *seats) fold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == 0 && s.more > 0 {
		s.more = 0
		s.spread(0)
	}
}
