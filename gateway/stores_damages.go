package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/forward/jetstream"
)

// damages says in a sentence what the embedded backend has lost, "" for nothing.
func (s *stores) damages() string {
	lost := s.lost()
	if len(lost) == 0 {
		return s.note
	}
	var all []string
	for _, stream := range slices.Sorted(maps.Keys(lost)) {
		all = append(all, fmt.Sprintf("%s up to %d runs", stream, lost[stream]))
	}
	return fmt.Sprintf("stored messages are lost to a damage of the disk: %s; see %s/damage.json, and delete that folder when it is dealt with",
		strings.Join(all, ", "), s.aside)
}

// lost counts the messages that each JetStream stream may have lost.
func (s *stores) lost() map[string]uint64 {
	lost := map[string]uint64{}
	for _, d := range s.events.Damage() {
		lost[jetstream.StreamOf(d.Stream)] += d.Messages
	}
	return lost
}

// exportDamages makes a series for every stream that has lost messages, so that one can be alerted.
func (g *Gateway) exportDamages() error {
	for stream, n := range g.stores.lost() {
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "headgate_stored_messages_lost", Help: "Messages of a stream that are lost to a damage of the disk, at most; each is a run of one or more events, how many it does not tell any more.",
			ConstLabels: prometheus.Labels{"stream": stream},
		})
		gauge.Set(float64(n))
		if err := g.metrics.Register(gauge); err != nil {
			return err
		}
	}
	return nil
}
