package forward

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/wire"
)

// sealing is a backend that notes what it stores and where lanes are sealed.
type sealing struct {
	memory
	sealed []string
	fails  int // calls of Seal that fail before one succeeds
}

func (s *sealing) Seal(_ context.Context, partition int32, version uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails > 0 {
		s.fails--
		return 0, errors.New("not now")
	}
	last := uint64(0)
	for _, r := range s.runs {
		if r.Partition == partition {
			last = r.Last
		}
	}
	s.sealed = append(s.sealed, fmt.Sprintf("%d by %d behind %d", partition, version, last))
	return last, nil
}

// routed is a batch that a table of this version has routed.
func routed(version uint64, partition int32, text ...string) *event.Batch {
	b := batch(event.Accepted, text...)
	b.TableVersion = version
	for i := range b.Events {
		b.Events[i].Partition = partition
	}
	return b
}

// Nothing that was in a lane is on its way any more when it is sealed, and nothing older comes in after that.
func TestSealWaitsForWhatTheLaneHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sealing{fails: 2}
		s.answer = func(ctx context.Context, _ *Run) error {
			<-time.After(300 * time.Millisecond)
			return nil
		}
		f := start(t, config(2), s, Deps{})
		for i := range 3 {
			forward(t, f, routed(1, 0, fmt.Sprint("e", i)))
		}
		began := time.Now()
		last, err := f.Seal(t.Context(), 0, 2)
		if last != 3 || err != nil || time.Since(began) < 300*time.Millisecond {
			t.Errorf("sealed at %d, %v after %v", last, err, time.Since(began))
		}
		if !slices.Equal(s.sealed, []string{"0 by 2 behind 3"}) {
			t.Errorf("markers %v", s.sealed)
		}
		b := routed(1, 0, "late")
		if stale, err := f.Forward(t.Context(), b, f.NewReceipt(), nil); len(stale) != 1 || err != nil {
			t.Errorf("an event of an older table: %v, %v", stale, err)
		}
		forward(t, f, routed(2, 0, "new"))
		if last, err := f.Seal(t.Context(), 1, 2); last != 0 || err != nil { // one that has nothing
			t.Errorf("an empty lane sealed at %d, %v", last, err)
		}
	})
}

func TestSealEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sealing{}
		stuck := true
		s.answer = func(context.Context, *Run) error {
			if stuck {
				return errors.New("down")
			}
			return nil
		}
		f := start(t, config(1), s, Deps{})
		forward(t, f, routed(1, 0, "a"))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := f.Seal(ctx, 0, 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		stuck = false
		waitDelivered(t, forward(t, f, func() *event.Batch {
			b := routed(3, 0, "b")
			b.Ack = event.Delivered
			return b
		}()))
		if len(s.sealed) != 0 {
			t.Errorf("sealed although nobody waited: %v", s.sealed)
		}
	})
}

// What comes first to a lane that something was moved to says what has to be read before it.
func TestFollowNamesPredecessorsInTheNextFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		f := start(t, config(2), m, Deps{})
		forward(t, f, routed(1, 1, "before"))
		f.Follow(1, wire.Predecessor{Partition: 0, Gateway: "g", Number: 7}, wire.Predecessor{Partition: 3, Gateway: "g", Number: 9})
		forward(t, f, routed(2, 1, "first"))
		synctest.Wait()
		<-time.After(time.Second)
		forward(t, f, routed(2, 1, "second"))
		<-time.After(time.Second)
		if after := predecessors(t, m.sent()); !slices.Equal(after, []int{0, 2, 0}) {
			t.Errorf("frames name %v predecessors", after)
		}
	})
}

// predecessors returns how many each frame names.
func predecessors(t *testing.T, runs []Run) (after []int) {
	t.Helper()
	for _, run := range runs {
		for rest := run.Payload; len(rest) > 0; {
			block, _, next, err := wire.SplitFrame(rest, "s2")
			if err != nil {
				t.Fatal(err)
			}
			var meta wire.Meta
			if err := wire.ParseMeta(block, &meta); err != nil {
				t.Fatal(err)
			}
			after = append(after, len(meta.After))
			rest = next
		}
	}
	return after
}

// The first frame may be lost in a power cut that leaves the second, or be refused: all name predecessors until one is stored.
func TestFramesNamePredecessorsUntilOneIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		m.answer = func(_ context.Context, run *Run) error {
			<-time.After(time.Second)
			if run.First == 1 {
				return &SendError{Refused: true, Code: event.EventTooLarge}
			}
			return nil
		}
		f := start(t, config(1), m, Deps{})
		f.Follow(0, wire.Predecessor{Partition: 3, Gateway: "g", Number: 9})
		forward(t, f, routed(1, 0, "refused"))
		<-time.After(500 * time.Millisecond)
		forward(t, f, routed(2, 0, "first")) // opened before anybody knows
		<-time.After(time.Second)            // it is on its way
		forward(t, f, routed(3, 0, "second"))
		if n := len(f.Unnamed(0)); n != 1 {
			t.Errorf("%d predecessors are unnamed before a frame is stored", n)
		}
		<-time.After(3 * time.Second)
		forward(t, f, routed(3, 0, "third"))
		<-time.After(3 * time.Second)
		if after := predecessors(t, m.sent()); !slices.Equal(after, []int{1, 1, 0}) {
			t.Errorf("frames name %v predecessors", after)
		}
		if n := len(f.Unnamed(0)); n != 0 {
			t.Errorf("%d predecessors are unnamed", n)
		}
	})
}

// Parked events are in no lane, and what they need is there when they may go on.
func TestParkedEventsComeBackAndKeepTheirMemory(t *testing.T) {
	m := &memory{}
	f := start(t, config(2), m, Deps{})
	b := routed(2, 0, "a", "b", "c")
	b.Events[1].Partition = event.Parked
	r := f.NewReceipt()
	stale, err := f.Forward(t.Context(), b, r, nil)
	if err != nil || !slices.Equal(stale, []int32{1}) {
		t.Fatalf("stale %v, %v", stale, err)
	}
	if held := f.budget.Held(); held < weight(b, &b.Events[1]) {
		t.Errorf("%d bytes held", held)
	}
	if stale, err = f.Forward(t.Context(), b, r, stale); err != nil || len(stale) != 1 {
		t.Fatalf("still parked: %v, %v", stale, err)
	}
	b.Events[1].Partition, b.TableVersion = 1, 3
	if stale, err = f.Forward(t.Context(), b, r, stale); err != nil || len(stale) != 0 {
		t.Fatalf("stale %v, %v", stale, err)
	}
	if err := r.Wait(t.Context(), event.Delivered); err != nil {
		t.Error(err)
	}
	all := data(t, m.sent())
	slices.Sort(all)
	wantStrings(t, all, "a", "b", "c")
	if held := f.budget.Held(); held != 0 {
		t.Errorf("%d bytes are still held", held)
	}
}

// A lane that gets no events is told again and again what it follows: of each other lane it keeps the last.
func TestAnIdleLaneKeepsTheLastOfEachPredecessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, config(3), &sealing{}, Deps{})
		for n := range uint64(1000) {
			f.Follow(2, wire.Predecessor{Partition: uint32(n % 2), Gateway: "gw", Number: n + 1})
		}
		want := []wire.Predecessor{{Partition: 0, Gateway: "gw", Number: 999}, {Partition: 1, Gateway: "gw", Number: 1000}}
		if got := f.Unnamed(2); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		forward(t, f, routed(1, 2, "e"))
		f.Follow(2, wire.Predecessor{Partition: 0, Gateway: "gw", Number: 1001}) // the frame that names the others is on its way
		<-time.After(time.Second)
		if got := f.Unnamed(2); len(got) != 1 || got[0].Number != 1001 {
			t.Errorf("%v", got)
		}
	})
}

// refuseOlder has a lane refuse what tables older than version route, and waits for nothing that it holds.
func refuseOlder(t *testing.T, f *Forwarder, partition int32, version uint64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = f.Seal(ctx, partition, version)
}
