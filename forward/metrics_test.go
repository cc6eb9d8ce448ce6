package forward

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/budget"
)

// gathered sums the values of a metric over its labels; pairs select some: "state=open".
func gathered(t *testing.T, reg *prometheus.Registry, name string, pairs ...string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			match := family.GetName() == name
			for _, pair := range pairs {
				found := false
				for _, l := range m.GetLabel() {
					found = found || l.GetName()+"="+l.GetValue() == pair
				}
				match = match && found
			}
			if match {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

// addUp checks that what is in the lanes is what came minus what left.
func addUp(t *testing.T, reg *prometheus.Registry, accepted int) {
	t.Helper()
	families := []string{"headgate_lane_events", "headgate_delivered_events_total", "headgate_refused_events_total", "headgate_abandoned_events_total"}
	sum := 0.0
	for _, name := range families {
		sum += gathered(t, reg, name)
	}
	if came := gathered(t, reg, "headgate_accepted_events_total"); came != float64(accepted) || sum != came {
		t.Errorf("%d accepted: the stream says %v, lanes and what left them %v", accepted, came, sum)
	}
	if came := gathered(t, reg, "headgate_partition_events_total"); came != float64(accepted) || sum != came {
		t.Errorf("%d accepted: partitions say %v, lanes and what left them %v", accepted, came, sum)
	}
}

func TestQ06GaugesAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		metrics, err := NewMetrics(reg)
		if err != nil {
			t.Fatal(err)
		}
		answers := make(chan error)
		limit := budget.New(1 << 20)
		cfg := config(2)
		cfg.FrameEvents, cfg.MaxRun, cfg.BackendName = 2, 1, "local"
		f := start(t, cfg, &memory{answer: func(_ context.Context, run *Run) error {
			if run.Events == 1 {
				return &SendError{Refused: true}
			}
			return <-answers
		}}, Deps{Budget: limit, Metrics: metrics})
		for n := 1; n <= 4; n++ {
			b := batch(event.Accepted, "a", "b", "c")
			b.Events[1].Partition = 1
			forward(t, f, b)
			addUp(t, reg, 3*n)
			synctest.Wait()
			addUp(t, reg, 3*n)
		}
		want := func(name string, value float64, pairs ...string) {
			t.Helper()
			if got := gathered(t, reg, name, pairs...); got != value {
				t.Errorf("%s %v = %v, want %v", name, pairs, got, value)
			}
		}
		want("headgate_lane_events", 4, "state=inflight")
		want("headgate_lane_events", 8, "state=sealed")
		want("headgate_delivery_inflight", 2, "stream=web")
		want("headgate_partition_events_total", 4, "partition=1")
		want("headgate_frame_size_bytes", 6)
		want("headgate_lane_bytes", float64(limit.Held()))

		answers <- errors.New("down")
		answers <- &SendError{Reason: "full"}
		answers <- &SendError{Refused: true}
		synctest.Wait()
		addUp(t, reg, 12)
		want("headgate_delivery_errors_total", 1, "backend=local", "reason=error")
		want("headgate_delivery_errors_total", 1, "backend=local", "reason=full")
		want("headgate_delivery_errors_total", 3, "backend=local", "reason=refused") // the run and each of its events
		want("headgate_refused_events_total", 2)
		close(answers) // nil: confirmed
		<-time.After(time.Minute)
		addUp(t, reg, 12)
		want("headgate_delivered_events_total", 10)
		want("headgate_lane_bytes", 0)
		metrics.Forget("web")
		want("headgate_delivered_events_total", 0)
	})
}

// Series come from the configuration only; a second forwarder of a stream takes the place of the first.
func TestSeriesOfAStreamThatIsMadeAnew(t *testing.T) {
	reg := prometheus.NewRegistry()
	metrics, err := NewMetrics(reg)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := New(config(3), discard{}, Deps{Metrics: metrics}); err != nil {
			t.Fatal(err)
		}
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "headgate_partition_events_total" && len(family.GetMetric()) != 3 {
			t.Errorf("%d series of partitions, want 3", len(family.GetMetric()))
		}
		if !strings.HasPrefix(family.GetName(), "headgate_") {
			t.Errorf("metric %s has not our prefix", family.GetName())
		}
	}
	if _, err := NewMetrics(reg); err == nil {
		t.Error("registered twice without an error")
	}
}
