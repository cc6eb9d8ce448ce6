package forward

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
)

// arrivals returns how long after start each run arrived.
func (m *memory) arrivals(start time.Time) (after []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, at := range m.at {
		after = append(after, at.Sub(start).String())
	}
	return after
}

func TestLinger(t *testing.T) {
	type step struct {
		after time.Duration
		ack   event.Level
	}
	for name, c := range map[string]struct {
		steps []step
		want  []string // when runs arrive
	}{
		"nobody waits":              {[]step{{0, event.Accepted}, {5 * time.Millisecond, event.Accepted}}, []string{"50ms"}},
		"a request waits":           {[]step{{0, event.Durable}}, []string{"1ms"}},
		"one of them waits":         {[]step{{0, event.Accepted}, {5 * time.Millisecond, event.Delivered}}, []string{"6ms"}},
		"the oldest decides":        {[]step{{0, event.Durable}, {500 * time.Microsecond, event.Durable}}, []string{"1ms"}},
		"idle does not postpone":    {[]step{{0, event.Durable}, {0, event.Accepted}}, []string{"1ms"}},
		"waiting is sooner at last": {[]step{{0, event.Accepted}, {49500 * time.Microsecond, event.Durable}}, []string{"50ms"}},
		"then it starts again":      {[]step{{0, event.Accepted}, {60 * time.Millisecond, event.Durable}}, []string{"50ms", "61ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memory{}
				f := start(t, config(1), m, Deps{})
				begin := time.Now()
				for _, s := range c.steps {
					<-time.After(time.Until(begin.Add(s.after)))
					forward(t, f, batch(s.ack, "event"))
				}
				<-time.After(time.Second)
				wantStrings(t, m.arrivals(begin), c.want...)
			})
		})
	}
}

// A frame that was cut before its time leaves nothing of its linger to the next one.
func TestLingerAfterACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		f := start(t, config(1), m, Deps{})
		begin := time.Now()
		forward(t, f, batch(event.Accepted, "a"))
		refuseOlder(t, f, 0, 2)
		synctest.Wait()
		b := batch(event.Accepted, "b")
		b.TableVersion = 2
		forward(t, f, b)
		<-time.After(time.Second)
		wantStrings(t, m.arrivals(begin), "0s", "50ms")
	})
}

func TestFullFramesAreSealedAtOnce(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"events": func(c *Config) { c.FrameEvents = 3 },
		"bytes":  func(c *Config) { c.FrameBytes = 3*101 + 10 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memory{}
				cfg := config(1)
				cfg.LingerIdle, cfg.MaxRun = time.Hour, 1
				change(&cfg)
				f := start(t, cfg, m, Deps{})
				event100 := strings.Repeat("x", 100)
				forward(t, f, batch(event.Accepted, event100, event100))
				synctest.Wait()
				if n := len(m.sent()); n != 0 {
					t.Errorf("%d runs before the frame is full", n)
				}
				forward(t, f, batch(event.Accepted, event100, event100, event100, event100, event100))
				synctest.Wait()
				for i, run := range m.sent() {
					if run.Events != 3 {
						t.Errorf("run %d has %d events, want 3", i, run.Events)
					}
				}
				if n := len(m.sent()); n != 2 {
					t.Errorf("%d runs, want 2 full frames, and one event left", n)
				}
			})
		})
	}
}

func TestAnEventLargerThanAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		cfg := config(1)
		cfg.FrameBytes, cfg.LingerIdle, cfg.MaxRun = 1000, time.Hour, 1
		f := start(t, cfg, m, Deps{})
		large := strings.Repeat("y", 5000)
		forward(t, f, batch(event.Accepted, "a", large))
		synctest.Wait()
		wantStrings(t, data(t, m.sent()), "a", large)
		if n := len(m.sent()); n != 2 {
			t.Errorf("%d frames, want one for each", n)
		}
	})
}

func TestNumbersGoOnBehindWhatTheBackendHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		m := &memory{resume: func(int32) (uint64, error) {
			if asked++; asked < 3 {
				return 0, errors.New("not yet")
			}
			return 41, nil
		}}
		f := start(t, config(1), m, Deps{})
		waitDelivered(t, forward(t, f, batch(event.Delivered, "a", "b")))
		waitDelivered(t, forward(t, f, batch(event.Delivered, "c")))
		runs := m.sent()
		if runs[0].First != 42 || runs[0].Last != 43 || runs[1].First != 44 {
			t.Errorf("runs %d-%d and %d-%d, want 42-43 and 44-44", runs[0].First, runs[0].Last, runs[1].First, runs[1].Last)
		}
		if want := "0011223344556677.web.0.42+1"; runs[0].ID != want {
			t.Errorf("id %s, want %s", runs[0].ID, want)
		}
		if asked != 3 {
			t.Errorf("asked %d times, want until it answered", asked)
		}
	})
}

func TestAQuietLaneDoesNotCallTheBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start(t, config(4), &memory{
			resume: func(int32) (uint64, error) { t.Error("resume of a lane without events"); return 0, nil },
			answer: func(context.Context, *Run) error { t.Error("send of nothing"); return nil },
		}, Deps{})
		<-time.After(time.Minute)
	})
}

// While a run is in flight a frame grows beyond its time: sealed, it would only wait.
func TestAFrameGrowsWhileARunIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		m := &memory{answer: func(context.Context, *Run) error { <-time.After(100 * time.Millisecond); return nil }}
		f := start(t, config(1), m, Deps{})
		for range 4 { // the first is in flight from 1 to 101 ms
			forward(t, f, batch(event.Durable, "event"))
			<-time.After(25 * time.Millisecond)
		}
		<-time.After(time.Second)
		wantStrings(t, m.arrivals(begin), "101ms", "201ms")
		if n := m.sent()[1].Frames; n != 1 {
			t.Errorf("the events of 100 ms came in %d frames, want 1", n)
		}
	})
}
