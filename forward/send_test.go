package forward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/budget"
)

func TestPauseIsExponentialWithJitterAfterTheCap(t *testing.T) {
	for _, c := range []struct {
		failures int
		asked    time.Duration
		random   float64
		want     time.Duration
	}{
		{1, 0, 0.5, 10 * time.Millisecond},
		{2, 0, 0.5, 20 * time.Millisecond},
		{5, 0, 0.5, 160 * time.Millisecond},
		{9, 0, 0.5, 1500 * time.Millisecond}, // the jitter is a part of the cap, not of 5.12 s
		{1 << 30, 0, 0.5, 1500 * time.Millisecond},
		{9, 0, 0, 0},
		{1, time.Minute, 0.5, time.Minute},
		{9, time.Second, 0.5, 1500 * time.Millisecond},
	} {
		if got := pause(c.failures, c.asked, c.random); got != c.want {
			t.Errorf("pause(%d, %v, %v) = %v, want %v", c.failures, c.asked, c.random, got, c.want)
		}
	}
}

// The same bytes are sent again until they are confirmed, and nothing overtakes them.
func TestSendsAgainUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var payloads [][]byte
		m := &memory{answer: func(_ context.Context, run *Run) error {
			if payloads = append(payloads, bytes.Clone(run.Payload)); len(payloads) < 8 {
				return errors.New("down")
			}
			return nil
		}}
		f := start(t, config(1), m, Deps{})
		first := forward(t, f, batch(event.Delivered, "a"))
		<-time.After(2 * time.Millisecond)
		second := forward(t, f, batch(event.Delivered, "b"))
		waitDelivered(t, first)
		waitDelivered(t, second)
		for i, p := range payloads[:8] {
			if !bytes.Equal(p, payloads[0]) {
				t.Errorf("try %d has other bytes than the first", i)
			}
		}
		wantStrings(t, data(t, m.sent()), "a", "b")
	})
}

func TestAPauseThatTheBackendAsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, asked := time.Now(), false
		m := &memory{answer: func(context.Context, *Run) error {
			if asked {
				return nil
			}
			asked = true
			return fmt.Errorf("send: %w", &SendError{After: 7 * time.Second, Err: errors.New("slow down")})
		}}
		waitDelivered(t, forward(t, start(t, config(1), m, Deps{}), batch(event.Delivered, "a")))
		wantStrings(t, m.arrivals(begin), "7.001s")
	})
}

func TestACallWithoutAnswerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		m := &memory{answer: func(ctx context.Context, run *Run) error {
			if tries++; tries == 1 {
				return block(ctx, run)
			}
			return nil
		}}
		cfg := config(1)
		cfg.SendTimeout = 3 * time.Second
		waitDelivered(t, forward(t, start(t, cfg, m, Deps{}), batch(event.Delivered, "a")))
		if tries != 2 {
			t.Errorf("%d tries, want 2", tries)
		}
	})
}

// While a run is in flight frames gather; they go out together, as they are, within the limit.
func TestWaitingFramesGoOutAsOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		m := &memory{answer: func(context.Context, *Run) error { <-release; return nil }}
		cfg := config(1)
		cfg.FrameEvents, cfg.Codec = 1, "s2"
		f := start(t, cfg, m, Deps{})
		forward(t, f, batch(event.Accepted, "a"))
		synctest.Wait() // in flight
		last := forward(t, f, batch(event.Delivered, "b", "c", "d\nd", "e\ne", "f"))
		synctest.Wait() // sealed
		close(release)
		waitDelivered(t, last)
		var shape []string
		for _, run := range m.sent() {
			shape = append(shape, fmt.Sprintf("%d-%d in %d of %s", run.First, run.Last, run.Frames, run.ID))
		}
		want := []string{"1-1 in 1 of 0011223344556677.web.0.1+1", "2-3 in 2 of 0011223344556677.web.0.2+2", "4-5 in 2 of 0011223344556677.web.0.4+2", "6-6 in 1 of 0011223344556677.web.0.6+1"}
		wantStrings(t, shape, want...)
		wantStrings(t, data(t, m.sent()), "a", "b", "c", "d\nd", "e\ne", "f")
	})
}

func TestCutRun(t *testing.T) {
	sized := func(sizes ...int) (frames []*frame) {
		for _, n := range sizes {
			frames = append(frames, &frame{payload: &buffer{b: make([]byte, n)}})
		}
		return frames
	}
	for _, c := range []struct {
		frames []*frame
		want   int
	}{
		{nil, 0}, {sized(10), 1}, {sized(1000), 1}, {sized(50, 50, 1), 2}, {sized(101, 1), 1}, {sized(1, 1, 1), 3},
	} {
		if got := cutRun(c.frames, 100); got != c.want {
			t.Errorf("cutRun of %d frames = %d, want %d", len(c.frames), got, c.want)
		}
	}
}

// A full budget says why: nothing gets out, the backend is full, or there is just too much.
func TestFullBudgetSaysWhy(t *testing.T) {
	for _, c := range []struct {
		err  error
		want event.Code
	}{
		{nil, event.Overloaded},
		{errors.New("down"), event.BackendUnavailable},
		{&SendError{Code: event.BackendFull}, event.BackendFull},
	} {
		t.Run(string(c.want), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var healed atomic.Bool
				m := &memory{answer: func(ctx context.Context, _ *Run) error {
					if c.err != nil && !healed.Load() {
						return c.err
					}
					rest(ctx, time.Minute)
					return nil
				}}
				cfg := config(1)
				cfg.SendTimeout = time.Hour
				f := start(t, cfg, m, Deps{Budget: budget.New(4000)})
				var err error
				for err == nil {
					<-time.After(time.Second)
					_, err = f.Forward(t.Context(), batch(event.Durable, strings.Repeat("z", 500)), f.NewReceipt(), nil)
				}
				wantCode(t, err, c.want, "")
				healed.Store(true)
				<-time.After(time.Hour)
				waitDelivered(t, forward(t, f, batch(event.Durable, "again")))
			})
		})
	}
}
