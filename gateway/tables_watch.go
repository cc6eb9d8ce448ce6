package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/headgate-io/headgate/admin"
)

// How often those who watch hear of changes, and of loads.
const (
	watchTick = 100 * time.Millisecond
	loadTick  = time.Second
)

// shownLoad is the load of a stream as those who watch hear of it.
type shownLoad struct {
	Time         time.Time `json:"time"`
	Stream       string    `json:"stream"`
	TableVersion uint64    `json:"table_version"`
	Partitions   []float64 `json:"partitions"` // bytes a second, with 64 for each event
	Active       int       `json:"active"`     // partitions that take part
	MaxOverMean  float64   `json:"max_over_mean"`
	TopShare     float64   `json:"top_share"` // of the heaviest key
	Splits       int       `json:"splits"`    // keys that are split
	Parked       int64     `json:"parked"`    // events that wait for a change to end
}

// Watch tells what happens to the tables of streams. See admin.Watcher.
func (g *Gateway) Watch(ctx context.Context, stream string, follow bool, tell func(admin.Notice) error) error {
	if stream != "" {
		if _, err := g.find(stream); err != nil {
			return err
		}
	}
	told := map[string]uint64{}
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	for loads := (time.Time{}); ; {
		if err := g.tellNews(stream, told, tell); err != nil || !follow {
			return err
		}
		if now := time.Now(); now.Sub(loads) >= loadTick {
			loads = now
			if err := g.tellLoads(stream, tell); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// watched are the streams that somebody watches, by name.
func (g *Gateway) watched(name string) (all []*stream) {
	streams := *g.streams.Load()
	for _, n := range slices.Sorted(maps.Keys(streams)) {
		if s := streams[n]; s.adaptive != nil && (name == "" || name == n) {
			all = append(all, s)
		}
	}
	return all
}

// tellNews tells what has happened behind what was told.
func (g *Gateway) tellNews(name string, told map[string]uint64, tell func(admin.Notice) error) error {
	for _, s := range g.watched(name) {
		for _, e := range s.adaptive.history.since(told[s.name] + 1) {
			told[s.name] = e.Number
			if err := tellOf(e.Kind, e, tell); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *Gateway) tellLoads(name string, tell func(admin.Notice) error) error {
	for _, s := range g.watched(name) {
		f, t := s.adaptive.figures.Load(), s.partitioner.Table()
		load := shownLoad{Time: time.Now().UTC(), Stream: s.name, TableVersion: t.Version(), Partitions: append([]float64{}, f.partitions...), Active: t.Active(),
			MaxOverMean: f.maxOverMean(), TopShare: f.topShare(), Splits: len(t.Splits()), Parked: s.adaptive.parked.Load()}
		if err := tellOf("load", load, tell); err != nil {
			return err
		}
	}
	return nil
}

func tellOf(name string, what any, tell func(admin.Notice) error) error {
	doc, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return tell(admin.Notice{Name: name, Data: doc})
}
