package gateway

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/internal/settings"
)

// elastic is a stream with 2 or 3 partitions that are filled soon.
func elastic(ordering string) config.Stream {
	return config.Stream{Key: config.Key{JSON: "/key"}, Ordering: ordering, Partitions: config.Partitions{Min: 2, Max: 3, Target: 64 << 10},
		Adaptive: config.Adaptive{Hold: settings.Duration(200 * time.Millisecond)}}
}

// trickle is a flood of a megabyte a second or less: five times what makes such a stream grow, and little for a slow disk.
func (in *instance) trickle(stream string) *flood {
	return in.floodEvery(stream, "", 100*time.Millisecond)
}

// states counts the partitions of a table by state.
func states(t shownTable) map[string]int {
	n := map[string]int{}
	for _, p := range t.Partitions {
		n[p.State]++
	}
	return n
}

// hasGrown tells that all three partitions take part, have slots, and have got events.
func hasGrown(t shownTable) bool {
	return states(t)["active"] == 3 && !slices.ContainsFunc(t.Partitions, func(p shownPartition) bool { return p.Slots == 0 || p.Rate == 0 })
}

// hasShrunk tells that as few as may be are left, and that the others have nothing any more.
func hasShrunk(t shownTable) bool { return states(t)["active"] == 2 && states(t)["draining"] == 0 }

// numbers are the highest number of each partition that a stream holds; each is there once, and they rise.
func (in *instance) numbers(stream string) map[int32]uint64 {
	in.t.Helper()
	last := map[int32]uint64{}
	for _, row := range in.rows(stream) {
		if row.Number != last[row.Partition]+1 {
			in.t.Fatalf("partition %d: %d follows %d", row.Partition, row.Number, last[row.Partition])
		}
		last[row.Partition] = row.Number
	}
	return last
}

// The number of partitions follows the load up and down, over a restart in between; nothing is lost, doubled or out of
// order, and who follows the stream gets what goes to the partition that comes.
func TestPartitionsFollowTheLoad(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"web": elastic("source")}
	in := start(t, cfg)
	if first := in.table("web"); len(first.Partitions) != 2 {
		t.Fatalf("%+v", first.Partitions)
	}
	follower := in.whoSees(2)
	f := in.trickle("web")
	in.untilTable("web", "grown", hasGrown)
	f.end()
	select {
	case err := <-follower:
		if err != errSeen {
			t.Errorf("a follower: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("a follower has seen nothing of the partition that came")
	}
	before := in.numbers("web")
	version := in.table("web").Version
	first := &(*in.streams.Load())["web"].adaptive.history
	in.end()

	in = start(t, cfg)
	f.in = in
	if again := in.table("web"); again.Version < version || len(again.Partitions) != 3 {
		t.Errorf("table %d with %d partitions follows %d", again.Version, len(again.Partitions), version)
	}
	f.compare(f.stored(), true)
	shrunk := in.untilTable("web", "shrunk", hasShrunk)
	if states(shrunk)["drained"] != 1 {
		t.Errorf("%v", states(shrunk))
	}
	in.told(append(first.since(0), shrunk.History...), "drain_partition", "of the target") // a slow machine begins it before the restart

	g := in.trickle("web")
	in.untilTable("web", "grown again", hasGrown)
	g.end()
	in.told(in.table("web").History, "activate_partition", "of the target")
	if after := in.numbers("web"); after[2] <= before[2] || len(after) != 3 {
		t.Errorf("numbers %v become %v", before, after)
	}
	in.end()
}

// told tells whether a history has such a change with such a reason.
func (in *instance) told(all []happening, kind, reason string) {
	in.t.Helper()
	if !slices.ContainsFunc(all, func(h happening) bool {
		return h.Kind == kind && h.Outcome == done && strings.Contains(h.Reason, reason) && len(h.Partitions) == 1
	}) {
		in.t.Errorf("no %s for %q in %+v", kind, reason, all)
	}
}

// whoSees follows a stream until it has read something of a partition.
func (in *instance) whoSees(partition int32) (ended chan error) {
	ended = make(chan error, 1)
	q := admin.Query{Stream: "web", Partition: admin.AllPartitions, Follow: true}
	go func() {
		ended <- in.ReadRows(in.t.Context(), q, func(rows []admin.Row) error {
			if slices.ContainsFunc(rows, func(r admin.Row) bool { return r.Partition == partition }) {
				return errSeen
			}
			return nil
		})
	}()
	return ended
}

var errSeen = errors.New("seen")

// The least and the target change while the stream runs; the most does not.
func TestElasticDefinitionCanChange(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = nil
	in := start(t, cfg)
	defer in.end()
	put := func(partitions string) error {
		_, _, err := in.SetStream(t.Context(), "web", json.RawMessage(`{"key":{"json":"/key"},"adaptive":{"hold":"200ms"},"partitions":`+partitions+`}`), admin.Match{})
		return err
	}
	for _, step := range []struct {
		partitions string
		active     int
	}{{`{"min":1,"max":8,"target":"1MiB/s"}`, 1}, {`{"min":5,"max":8,"target":"1MiB/s"}`, 5}, {`8`, 8}} {
		if err := put(step.partitions); err != nil {
			t.Fatal(err)
		}
		in.untilTable("web", step.partitions, func(table shownTable) bool { return states(table)["active"] == step.active })
	}
	for partitions, part := range map[string]string{
		`9`: "made for 8 at most and cannot have 9", `{"min":2,"max":16,"target":"1MiB/s"}`: "made for 8 at most and cannot have 16",
		`{"min":9,"max":8,"target":"1MiB/s"}`: "must be 1 to max, which is 8, got 9", `{"min":2,"max":8}`: "target: is needed",
	} {
		if err := put(partitions); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", partitions, err)
		}
	}
}
