package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/control"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
)

// deadLetterOf returns the stream whose dead letter is called name; ok is false for any other name.
func deadLetterOf(name string) (stream string, ok bool) {
	stream, ok = strings.CutSuffix(name, event.DeadLetterSuffix)
	return stream, ok && config.ValidName(stream)
}

// ours refuses to let users write or change a dead letter.
func ours(name string) error {
	if of, ok := deadLetterOf(name); ok {
		return event.Problemf(event.BadStreamName, "%s is the dead letter of stream %s: the gateway writes it, and others read it", name, of)
	}
	return nil
}

// deadLetterConfig is the definition of all dead letters.
func deadLetterConfig() config.Stream {
	return config.Stream{Partitions: config.Partitions{Max: 1}}.WithDefaults()
}

// openDeadLetter returns a dead letter, and makes it on first use.
func (g *Gateway) openDeadLetter(ctx context.Context, name string) (*stream, error) {
	if s, ok := (*g.streams.Load())[name]; ok {
		return s, nil
	}
	g.burying.Lock()
	defer g.burying.Unlock()
	if s, ok := (*g.streams.Load())[name]; ok {
		return s, nil
	}
	if g.buried {
		return nil, event.Problemf(event.Draining, "the gateway is stopping; send the request again")
	}
	cfg := deadLetterConfig()
	doc, err := g.store.Streams.Read(ctx, name)
	if errors.Is(err, control.ErrNotFound) {
		doc.Revision, err = g.store.Streams.Write(ctx, name, cfg.Document(), 0)
	}
	if err != nil {
		return nil, fmt.Errorf("store the definition of %s: %w", name, err)
	}
	if err := g.startStream(ctx, name, cfg, doc.Revision, managedByGateway); err != nil {
		return nil, err
	}
	g.log.Info("dead letter made", "stream", name)
	return (*g.streams.Load())[name], nil
}

// reopenDeadLetter opens a dead letter that was made before. One that does not open is made when it is needed.
func (g *Gateway) reopenDeadLetter(ctx context.Context, name string) {
	if _, err := g.openDeadLetter(ctx, name); err != nil {
		g.log.Error("a dead letter does not open: it is tried again when there is something for it", "stream", name, "error", err)
	}
}

func newDeadLettered(reg prometheus.Registerer) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "headgate_deadletter_events_total",
		Help: "Events of a stream that are safe in its dead letter."}, []string{"stream", "code"})
	reg.MustRegister(c)
	return c
}

func newReplayed(reg prometheus.Registerer) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "headgate_deadletter_replayed_events_total",
		Help: "Letters of a stream that were replayed, by what became of them."}, []string{"stream", "result"})
	reg.MustRegister(c)
	return c
}

func (g *Gateway) countReplayed(stream string, sums *admin.ReplaySums) {
	for result, n := range map[string]uint64{"replayed": sums.Replayed, "filtered": sums.Filtered, "failed": sums.Failed} {
		g.replayed.WithLabelValues(stream, result).Add(float64(n))
	}
}
