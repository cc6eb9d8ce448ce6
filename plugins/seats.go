package plugins

import (
	"context"
	"slices"
	"sync"
	"time"
)

// seats bounds how many guests compute for long at the same time. Compiled code keeps one of the Go runtime's processors as long as
// it computes, and the requests of other streams lack it. So a guest that computes for long has a seat, of which there is one less
// than there are processors, and at least one. A nil *seats holds nobody up.
type seats struct {
	all  int  // may be taken
	only bool // there is one processor: who has the seat leaves none to the others, and rests in between

	mu    sync.Mutex // guards the rest
	taken int
	line  []chan struct{} // who waits, in order, while all are taken; closed when the seat is theirs
}

const (
	seatFrom = 4 * time.Millisecond  // of computing in one call: from then on a guest does not compute without a seat
	seatTurn = 10 * time.Millisecond // of computing on a seat that others wait for
	restFrom = 2 * time.Millisecond  // of computing on the only processor between two rests
	restTime = 50 * time.Microsecond // at least: the runtime looks for what came from the network when nothing is ready
)

// newSeats leaves one core of so many to those who do not compute for long. Of 0 there are none.
func newSeats(cores int) *seats {
	if cores == 0 {
		return nil
	}
	return &seats{all: max(1, cores-1), only: cores == 1}
}

// wait takes a seat when it is its turn, and gives up after so long, if that is not 0, or when of has ended, if there is one.
func (s *seats) wait(most time.Duration, of context.Context) bool {
	s.mu.Lock()
	if s.taken < s.all {
		s.taken++
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
	var ended <-chan struct{}
	if of != nil {
		ended = of.Done()
	}
	select {
	case <-mine:
		return true
	case <-end:
	case <-ended:
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
	s.taken--
}
