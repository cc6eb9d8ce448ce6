package plugins

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestF61SeatsAreGivenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSeats(3)
		if !s.wait(1, nil) || !s.wait(1, nil) || s.wait(1, nil) || s.asked() {
			t.Fatal("3 cores have 2 seats")
		}
		order := make(chan int, 3)
		for i := range 3 {
			go func() {
				if s.wait(0, nil) {
					order <- i
				}
			}()
			synctest.Wait()
		}
		for want := range 3 {
			s.stand()
			if got := <-order; got != want {
				t.Errorf("the seat went to %d, want %d", got, want)
			}
		}
		if s.asked() {
			t.Error("somebody waits")
		}
		s.stand()
		s.stand()
		if !s.free() {
			t.Error("a seat is taken")
		}
	})
}

func TestF61WhoCannotWaitLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSeats(1)
		if !s.wait(1, nil) {
			t.Fatal("one core has a seat")
		}
		if s.wait(time.Second, nil) || s.asked() {
			t.Error("it got a seat that was taken, or still waits")
		}
		s.stand()
		if !s.wait(1, nil) {
			t.Error("a free seat was not given")
		}
		s.stand()
		if !s.free() {
			t.Error("a seat is taken")
		}
	})
}

// free reports that all seats are.
func (s *seats) free() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken == 0 && len(s.line) == 0
}

// Guests that compute to their deadline, in events, at their start and in a test, have seats, of which none is left taken.
func TestF61GuestsThatComputeForLongTakeTurns(t *testing.T) {
	const long = 3 * time.Duration(seatFrom/mostWorked) * mostBetween / 2 // however busy the machine is, so long a call comes to a seat
	h := hostOf(t, Config{Instances: 3, Deadline: long, InitTime: long, Cores: 2})
	loops := withFunction(base(), fnDeep, wasmFunction{":", 0, endless})
	if r, err := h.Admit(t.Context(), started(loops).bytes()); err != nil || !strings.Contains(r.Failed(), codeInit) {
		t.Errorf("%v %s", err, r.Failed())
	}
	if !h.seats.free() {
		t.Fatal("a start that was stopped keeps its seat")
	}
	c := chainOf(t, h, Step{Name: "hostile", Module: loadOf(t, h, hostile(loop+branch(0)+end).bytes())})
	if !h.seats.wait(1, nil) {
		t.Fatal("no seat")
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Process(t.Context(), batchOf("ka", "!", "kb")) }()
	for !h.seats.asked() {
		select {
		case err := <-ended:
			t.Fatal("a call computed for long without a seat", err)
		case <-time.After(time.Millisecond):
		}
	}
	h.seats.stand()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			b := batchOf("ka", "!", "kb")
			if err := c.Process(t.Context(), b); err != nil {
				t.Error(err)
				return
			}
			if got, want := outcomes(b), "accepted key=a\nrejected plugin_failed\naccepted key=b\n"; got != want {
				t.Errorf("got\n%s want\n%s", got, want)
			}
		})
	}
	all.Wait()
	if !h.seats.free() {
		t.Error("a call that was stopped keeps its seat")
	}
}

// A request that has no more time to wait for a seat ends, and no event is blamed.
func TestF61ARequestDoesNotWaitForASeatBeyondItsEnd(t *testing.T) {
	g := newGuest(nil, newSeats(1))
	g.limit, g.rest = time.Hour, time.Nanosecond
	if !g.seats.wait(1, nil) {
		t.Fatal("no seat")
	}
	g.worked = seatFrom
	if g.place() || g.on {
		t.Error("it got a seat that was taken")
	}
	if g.seats.asked() || g.waited <= 0 {
		t.Errorf("it still waits, or waited %v", g.waited)
	}
}

// What a machine does besides is no work of a guest, so one that computes little needs no seat however busy the machine is.
func TestF61AGuestThatWasHeldUpNeedsNoSeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuest(nil, newSeats(1))
		g.limit = time.Hour
		g.start()
		for range 2 * mostVisits {
			<-time.After(time.Second)
			g.check()
			g.start()
		}
		for range mostVisits - 1 {
			<-time.After(time.Second)
			g.check()
		}
		if g.on || !g.seats.free() {
			t.Error("it has a seat")
		}
	})
}

// On the only processor a guest that computes rests, so that others are served; where there are more, it does not.
func TestF61AGuestOnTheOnlyProcessorRests(t *testing.T) {
	for cores, want := range map[int]time.Duration{1: 2 * restTime, 2: 0} {
		synctest.Test(t, func(t *testing.T) {
			g := newGuest(nil, newSeats(cores))
			g.limit = time.Hour
			g.start()
			for g.worked = seatFrom; g.worked <= seatFrom+2*restFrom; g.worked += restFrom {
				g.check()
			}
			if g.waited != want {
				t.Errorf("%d cores: it rested for %v, want %v", cores, g.waited, want)
			}
			if g.spent != 0 {
				t.Errorf("%v of rest count as its own", g.spent)
			}
			g.leave()
		})
	}
}

// mostVisits is how many slices of fuel a guest has before it takes a seat, at least.
const mostVisits = int(seatFrom / mostWorked)
