package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/settings"
)

// flood posts batches of events to a stream until stop is closed: so many in a hundred have the key hot, the others
// many keys. Each of the sources waits for its answers and numbers its events.
type flood struct {
	in      *instance
	stream  string
	hot     int // in a hundred
	sources int
	sent    []int // events of each source
	mu      sync.Mutex
	calm    atomic.Bool // no event has the hot key any more
	stop    chan struct{}
	all     sync.WaitGroup
}

func (in *instance) flood(stream string, hot, sources int) *flood {
	f := &flood{in: in, stream: stream, hot: hot, sources: sources, sent: make([]int, sources), stop: make(chan struct{})}
	for s := range sources {
		f.all.Go(func() { f.run(s) })
	}
	return f
}

func (f *flood) run(source int) {
	pad := strings.Repeat("x", 200)
	for n := 0; ; {
		select {
		case <-f.stop:
			f.mu.Lock()
			f.sent[source] = n
			f.mu.Unlock()
			return
		default:
		}
		var body bytes.Buffer
		for i := range 200 {
			key := fmt.Sprint("cold", (n*31+source*7)%500)
			if i%100 < f.hot && !f.calm.Load() {
				key = "hot"
			}
			fmt.Fprintf(&body, `{"key":%q,"source":%d,"n":%d,"pad":%q}`+"\n", key, source, n, pad)
			n++
		}
		resp, doc := f.in.do("POST", f.in.events(f.stream), body.String(), "Content-Type: application/x-ndjson", fmt.Sprint("Headgate-Source: source-", source))
		if resp.StatusCode != 200 {
			f.in.t.Errorf("%d %s", resp.StatusCode, doc)
			return
		}
	}
}

func (f *flood) end() {
	close(f.stop)
	f.all.Wait()
}

// table is the routing table as the admin API gives it.
func (in *instance) table(stream string) (t shownTable) {
	in.t.Helper()
	doc, err := in.Table(in.t.Context(), stream)
	if err != nil {
		in.t.Fatal(err)
	}
	if err := json.Unmarshal(doc, &t); err != nil {
		in.t.Fatal(err)
	}
	return t
}

// untilTable waits for a table that is as it should be.
func (in *instance) untilTable(stream, what string, ok func(shownTable) bool) shownTable {
	in.t.Helper()
	for end := time.After(20 * time.Second); ; {
		t := in.table(stream)
		if ok(t) {
			return t
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-end:
			in.t.Fatalf("%s: not %s: %+v", stream, what, t)
		}
	}
}

// adaptiveStream has a key in each event, keys that are merged soon, and what else change says.
func adaptiveStream(change func(*StreamConfig)) StreamConfig {
	s := StreamConfig{Key: KeyConfig{JSON: "/key"}, Partitions: PartitionsConfig{Max: 8}, Adaptive: AdaptiveConfig{Hold: settings.Duration(500 * time.Millisecond)}}
	change(&s)
	return s
}

func isSplit(t shownTable) bool  { return len(t.Splits) > 0 && len(t.UnderWay) == 0 }
func isMerged(t shownTable) bool { return len(t.Splits) == 0 && len(t.UnderWay)+len(t.Moving) == 0 }

// inOrder checks that a stream has all events of a flood once, and those of each key and source in their order: as they
// are stored when order is kept, since nothing goes to a new place before all that was left is stored.
func (f *flood) inOrder(ordered bool) {
	f.in.t.Helper()
	last, count, late := map[string]int{}, make([]int, f.sources), 0
	for _, row := range f.in.rows(f.stream) {
		var e struct {
			Key       string
			Source, N int
		}
		if err := json.Unmarshal(row.Data, &e); err != nil {
			f.in.t.Fatal(err)
		}
		count[e.Source]++
		of := fmt.Sprint(e.Key, " of ", e.Source)
		if before, ok := last[of]; ok && e.N <= before {
			late++
		}
		last[of] = e.N
	}
	if !slices.Equal(count, f.sent) {
		f.in.t.Errorf("%v events are stored of %v", count, f.sent)
	}
	if ordered && late > 0 {
		f.in.t.Errorf("%d events came behind later ones of their key and source", late)
	}
}

func TestHotKeyOfAnUnorderedStreamIsSplitAndMerged(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]StreamConfig{"web": adaptiveStream(func(s *StreamConfig) { s.Ordering = "none" })}
	in := start(t, cfg)
	defer in.end()
	f := in.flood("web", 40, 2)
	split := in.untilTable("web", "split", isSplit)
	if s := split.Splits[0]; s.By != "load" || s.Fanout < 2 {
		t.Errorf("%+v", s)
	}
	f.end()
	in.untilTable("web", "merged", isMerged)
	f.inOrder(false)
}

func TestK07HotKeyKeepsItsOrderBySource(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]StreamConfig{"web": adaptiveStream(func(s *StreamConfig) {})}
	in := start(t, cfg)
	defer in.end()
	f := in.flood("web", 40, 4)
	split := in.untilTable("web", "split", isSplit)
	if s := split.Splits[0]; s.By != "source" || s.Fanout < 2 || s.Key == nil || *s.Key != "hot" {
		t.Errorf("%+v", s)
	}
	f.calm.Store(true)
	in.untilTable("web", "merged", isMerged)
	f.end()
	f.inOrder(true)
	for _, h := range in.table("web").History {
		t.Logf("%s %s: %s", h.Kind, h.Outcome, h.Reason)
	}
}
