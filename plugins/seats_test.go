package plugins

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// spreads remembers what the runtime was told.
type spreads struct {
	mu  sync.Mutex
	all []int
}

func (s *spreads) told(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, more)
}

func (s *spreads) list() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

func TestF61SeatsAreGivenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told spreads
		s := newSeats(3, told.told)
		if !s.sit() || !s.sit() || s.sit() || s.asked() {
			t.Fatal("3 cores have 2 seats")
		}
		order := make(chan int, 3)
		for i := range 3 {
			go func() {
				if s.wait(0) {
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
		<-time.After(seatsKept)
		synctest.Wait()
		if got := told.list(); !slices.Equal(got, []int{1, 2, 0}) {
			t.Errorf("the runtime was told %v", got)
		}
	})
}

func TestF61WhoCannotWaitLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told spreads
		s := newSeats(1, told.told)
		if !s.sit() {
			t.Fatal("one core has a seat")
		}
		if s.wait(time.Second) || s.asked() {
			t.Error("it got a seat that was taken, or still waits")
		}
		s.stand()
		<-time.After(seatsKept - 1)
		if !s.wait(1) {
			t.Error("a free seat was not given")
		}
		<-time.After(2 * seatsKept) // it is taken: the runtime stays as it is
		s.stand()
		<-time.After(seatsKept - 1)
		if got := told.list(); !slices.Equal(got, []int{1}) {
			t.Errorf("the runtime was told %v", got)
		}
		<-time.After(1)
		synctest.Wait()
		if got := told.list(); !slices.Equal(got, []int{1, 0}) {
			t.Errorf("the runtime was told %v", got)
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
	var told spreads
	const long = 3 * time.Duration(mostVisits) * mostBetween / 2 // however busy the machine is, so long a call comes to a seat
	h := hostOf(t, Config{Instances: 3, Deadline: long, InitTime: long, Spread: told.told})
	h.seats.all = 1
	loops := withFunction(base(), fnDeep, wasmFunction{":", 0, endless})
	if r, err := h.Admit(t.Context(), started(loops).bytes()); err != nil || !strings.Contains(r.Failed(), codeInit) {
		t.Errorf("%v %s", err, r.Failed())
	}
	if !h.seats.free() {
		t.Fatal("a start that was stopped keeps its seat")
	}
	if got := told.list(); len(got) == 0 || slices.Max(got) != 1 {
		t.Errorf("the runtime was told %v", got)
	}
	c := chainOf(t, h, Step{Name: "hostile", Module: loadOf(t, h, hostile(loop+branch(0)+end).bytes())})
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
	if got := told.list(); slices.Max(got) != 1 {
		t.Errorf("the runtime was told %v", got)
	}
}

// A request that has no more time to wait for a seat ends, and no event is blamed.
func TestF61ARequestDoesNotWaitForASeatBeyondItsEnd(t *testing.T) {
	g := newGuest(nil, newSeats(1, func(int) {}))
	g.limit, g.rest = time.Hour, time.Nanosecond
	if !g.seats.sit() {
		t.Fatal("no seat")
	}
	g.worked = seatAlways
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
		g := newGuest(nil, newSeats(1, func(more int) { t.Errorf("the runtime was told %d", more) }))
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
	})
}

// mostVisits is how many slices of fuel a guest has before it takes a seat, at least.
const mostVisits = int(seatWhenFree / mostWorked)
