package consume

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/compress"
	"github.com/headgate-io/headgate/sdk/wire"
)

// laned is a frame of a partition with predecessors, one event a number.
func laned(t testing.TB, partition uint32, first uint64, events []string, after ...wire.Predecessor) []byte {
	t.Helper()
	c, err := compress.ByName("zstd")
	if err != nil {
		t.Fatal(err)
	}
	m := wire.Meta{Gateway: "gw", Stream: "web", Partition: partition, First: first, Framing: wire.NDJSON, After: after,
		Routes: []wire.Route{{Slot: wire.None, Child: wire.None}}}
	var raw []byte
	for _, e := range events {
		raw = wire.AppendEvent(raw, []byte(e), wire.NDJSON)
		m.EventRoute = append(m.EventRoute, 0)
	}
	data := c.Append(nil, raw)
	m.RawLen, m.DataLen = uint64(len(raw)), uint64(len(data))
	return wire.AppendFrame(nil, "zstd", wire.AppendMeta(nil, &m, raw), data)
}

type ordered struct {
	*Order
	t   testing.TB
	got []string
	now time.Time
}

func newOrdered(t testing.TB, limit int) *ordered {
	r := &ordered{t: t, now: time.Unix(0, 0)}
	r.Order = NewOrder(OrderConfig{Limit: limit, Now: func() time.Time { return r.now }}, func(e Event) error {
		r.got = append(r.got, string(e.Data))
		return nil
	})
	return r
}

func (r *ordered) add(run []byte) {
	r.t.Helper()
	if err := r.Add(run, "zstd", wire.TypeNDJSON); err != nil {
		r.t.Fatal(err)
	}
}

func (r *ordered) want(all ...string) {
	r.t.Helper()
	if !slices.Equal(r.got, all) {
		r.t.Errorf("got %q, want %q", r.got, all)
	}
}

func before(partition uint32, number uint64) wire.Predecessor {
	return wire.Predecessor{Partition: partition, Gateway: "gw", Number: number}
}

func TestFrameWaitsForItsPredecessors(t *testing.T) {
	r := newOrdered(t, 0)
	r.add(laned(t, 1, 1, []string{"c"}, before(0, 2)))
	r.add(laned(t, 1, 2, []string{"d"}))
	r.add(laned(t, 2, 1, []string{"x"})) // others do not wait
	r.now = r.now.Add(3 * time.Second)
	b := r.Blocked()
	if len(b) != 1 || b[0].Lane.Partition != 1 || b[0].For.Partition != 0 || b[0].Number != 2 || b[0].Since != 3*time.Second || b[0].Frames != 2 {
		t.Errorf("blocked %+v", b)
	}
	r.add(laned(t, 0, 1, []string{"a"}))
	r.want("x", "a")
	r.add(laned(t, 0, 2, []string{"b"}))
	r.want("x", "a", "b", "c", "d")
	if s := r.Stats(); s.Events != 5 || s.Waited != 2 || s.Waiting != 0 || s.Longest != 3*time.Second || len(r.Blocked()) != 0 {
		t.Errorf("%+v", s)
	}
}

func TestDuplicatesAreDroppedAlsoWhereFramesAreCutOtherwise(t *testing.T) {
	r := newOrdered(t, 0)
	r.add(laned(t, 0, 1, []string{"a", "b"}))
	r.add(laned(t, 0, 1, []string{"a", "b"}))
	r.add(laned(t, 0, 2, []string{"b", "c"}))
	waits := laned(t, 1, 1, []string{"z"}, before(0, 9))
	r.add(waits)
	r.add(waits)
	r.add(laned(t, 0, 9, []string{"y"})) // numbers may jump
	r.want("a", "b", "c", "y", "z")
	if s := r.Stats(); s.Duplicates != 4 {
		t.Errorf("%+v", s)
	}
}

func TestReaderThatStartsInTheMiddle(t *testing.T) {
	r := newOrdered(t, 0)
	r.Start(Lane{"web", 0, "gw"}, 5)
	r.add(laned(t, 1, 7, []string{"c"}, before(0, 5)))
	r.add(laned(t, 0, 5, []string{"old", "new"}))
	r.want("c", "new")
	if r.At(Lane{"web", 0, "gw"}) != 6 {
		t.Errorf("at %d", r.At(Lane{"web", 0, "gw"}))
	}
	r.add(laned(t, 2, 1, []string{"never"}, before(3, 1)))
	if err := r.GiveUp(); err != nil {
		t.Fatal(err)
	}
	r.want("c", "new", "never")
}

func TestWhatWaitsIsBounded(t *testing.T) {
	frame := laned(t, 1, 1, []string{"c"}, before(0, 1))
	r := newOrdered(t, len(frame)-1)
	if err := r.Add(frame, "zstd", wire.TypeNDJSON); !errors.Is(err, ErrBlocked) {
		t.Fatalf("got %v", err)
	}
	r.add(laned(t, 0, 1, []string{"a"}))
	r.add(frame)
	r.want("a", "c")
}

// A key goes from partition to partition; in whatever way the lanes are mixed, its events come in their order.
func TestOrderIsRestoredFromAnyMix(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var lanes [4][][]byte
		var numbers [4]uint64
		var want []string
		at, n := 0, 0
		var after []wire.Predecessor
		for range 12 {
			for range 1 + rnd.IntN(3) {
				var events []string
				for range 1 + rnd.IntN(3) {
					events = append(events, fmt.Sprint(n))
					n++
				}
				want = append(want, events...)
				lanes[at] = append(lanes[at], laned(t, uint32(at), numbers[at]+1, events, after...))
				numbers[at] += uint64(len(events))
				after = nil
			}
			next := (at + 1 + rnd.IntN(3)) % 4
			after = []wire.Predecessor{before(uint32(at), numbers[at])}
			at = next
		}
		r := newOrdered(t, 0)
		for left := true; left; {
			left = false
			for l := range lanes {
				if len(lanes[l]) > 0 {
					left = true
					if rnd.IntN(3) == 0 {
						r.add(lanes[l][0])
						lanes[l] = lanes[l][1:]
					}
				}
			}
		}
		r.want(want...)
	}
}
