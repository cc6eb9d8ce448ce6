package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/internal/settings"
	"github.com/headgate-io/headgate/partitioner"
	"github.com/headgate-io/headgate/sdk/consume"
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
	asks    string        // Headgate-Ordering of each request, "" for none
	every   time.Duration // a request of each source
	calm    atomic.Bool   // no event has the hot key any more
	stop    chan struct{}
	all     sync.WaitGroup
	history handedOver
}

// sources is how many producers a flood has: enough to be spread over 8 children.
const sources = 16

// mostWaiting is how many events may wait for the backend before a flood pauses: on a machine that cannot deliver as much as is sent
// no lane would ever be empty enough to be left.
const mostWaiting = 4000

func (in *instance) flood(stream string) *flood {
	return in.floodEvery(stream, "", 20*time.Millisecond)
}

func (in *instance) floodEvery(stream, asks string, every time.Duration) *flood {
	f := &flood{in: in, history: handedOver{began: time.Now()}, stream: stream, asks: asks, hot: 40, sources: sources, every: every, sent: make([]int, sources), stop: make(chan struct{})}
	f.calm.Store(asks == "strict") // a hot key would be limited
	for s := range sources {
		f.all.Go(func() { f.run(s) })
	}
	return f
}

func (f *flood) run(source int) {
	pad := strings.Repeat("x", 200)
	turn := time.NewTicker(f.every)
	defer turn.Stop()
	for n := 0; ; <-turn.C {
		select {
		case <-f.stop:
			f.mu.Lock()
			f.sent[source] = n
			f.mu.Unlock()
			return
		default:
		}
		if (*f.in.streams.Load())[f.stream].forwarder.Waiting() > mostWaiting {
			continue
		}
		var body bytes.Buffer
		events := map[string][]int{}
		for i := range 20 {
			key := fmt.Sprint("cold", (n*31+source*7)%500)
			if i%10 < f.hot/10 && !f.calm.Load() {
				key = "hot"
			}
			fmt.Fprintf(&body, `{"key":%q,"source":%d,"n":%d,"pad":%q}`+"\n", key, source, n, pad)
			of := fmt.Sprint(key, " of ", source)
			events[of] = append(events[of], n)
			n++
		}
		end := f.history.call(source, events)
		resp, doc := f.in.do("POST", f.in.events(f.stream+"?ack=accepted"), body.String(), f.headers(source)...)
		if resp.StatusCode != 202 {
			f.in.t.Errorf("%d %s", resp.StatusCode, doc)
			return
		}
		end("acked")
	}
}

func (f *flood) headers(source int) []string {
	all := []string{"Content-Type: application/x-ndjson", fmt.Sprint("Headgate-Source: source-", source)}
	if f.asks != "" {
		all = append(all, "Headgate-Ordering: "+f.asks)
	}
	return all
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
	for end := time.After(2 * time.Minute); ; {
		t := in.table(stream)
		if ok(t) {
			return t
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-end:
			t.History = t.History[:min(12, len(t.History))]
			in.t.Fatalf("%s: not %s: %+v", stream, what, t)
		}
	}
}

// adaptiveStream has a key in each event, keys that are merged soon, and what else change says.
func adaptiveStream(change func(*config.Stream)) config.Stream {
	s := config.Stream{Key: config.Key{JSON: "/key"}, Partitions: config.Partitions{Max: 8}, Adaptive: config.Adaptive{Hold: settings.Duration(500 * time.Millisecond)}}
	change(&s)
	return s
}

func isSplit(t shownTable) bool { return len(t.Splits) > 0 && len(t.UnderWay) == 0 }

// isEven tells that a key is split and that no partition has twice its share; whole, one has more than three times as much.
func isEven(t shownTable) bool {
	sum, most := 0.0, 0.0
	for _, p := range t.Partitions {
		sum, most = sum+p.Rate, max(most, p.Rate)
	}
	return isSplit(t) && most*float64(len(t.Partitions)) < 2*sum
}

func isMerged(t shownTable) bool { return len(t.Splits) == 0 && len(t.UnderWay)+len(t.Moving) == 0 }

// account checks that all events of a flood are there once, and those of each key and source in their order.
type account struct {
	last  map[string]int
	count []int
	late  int
	logs  map[string][]int
}

func newAccount(sources int) *account {
	return &account{last: map[string]int{}, count: make([]int, sources), logs: map[string][]int{}}
}

func (a *account) add(t *testing.T, data []byte) {
	t.Helper()
	var e struct {
		Key       string
		Source, N int
	}
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	a.count[e.Source]++
	of := fmt.Sprint(e.Key, " of ", e.Source)
	if before, ok := a.last[of]; ok && e.N <= before {
		a.late++
	}
	a.last[of] = e.N
	a.logs[of] = append(a.logs[of], e.N)
}

// stored reads a stream back. Nothing goes to a new place before all that was left is stored, so that
// the order in which events are stored is right.
func (f *flood) stored() *account {
	a := newAccount(f.sources)
	for _, row := range f.in.rows(f.stream) {
		a.add(f.in.t, row.Data)
	}
	return a
}

func (f *flood) compare(a *account, ordered bool) {
	f.in.t.Helper()
	if !slices.Equal(a.count, f.sent) {
		f.in.t.Errorf("%v events are stored of %v", a.count, f.sent)
	}
	if ordered && a.late > 0 {
		f.in.t.Errorf("%d events came behind later ones of their key and source", a.late)
	}
}

func TestHotKeyOfAnUnorderedStreamIsSplitAndMerged(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"web": adaptiveStream(func(s *config.Stream) { s.Ordering = "none" })}
	in := start(t, cfg)
	defer in.end()
	f := in.flood("web")
	split := in.untilTable("web", "split", isSplit)
	if s := split.Splits[0]; s.By != "load" || s.Fanout < 2 {
		t.Errorf("%+v", s)
	}
	in.untilTable("web", "even", isEven)
	f.end()
	in.untilTable("web", "merged", isMerged)
	f.compare(f.stored(), false)
}

func TestK07HotKeyKeepsItsOrderBySource(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"web": adaptiveStream(func(s *config.Stream) {})}
	in := start(t, cfg)
	defer in.end()
	f := in.flood("web")
	split := in.untilTable("web", "split", isSplit)
	if s := split.Splits[0]; s.By != "source" || s.Fanout < 2 || s.Key == nil || *s.Key != "hot" {
		t.Errorf("%+v", s)
	}
	if place, err := in.Explain(t.Context(), "web", []byte("hot"), []byte("source-1"), ""); err != nil || !strings.Contains(string(place), `"split":{"fanout":`) || !strings.Contains(string(place), "to its child") {
		t.Errorf("explained as %s, %v", place, err)
	}
	in.untilTable("web", "even", isEven)
	f.calm.Store(true)
	in.untilTable("web", "merged", isMerged)
	f.end()
	stored := f.stored()
	f.compare(stored, true)
	if wrong := f.history.check(stored.logs, t.Name()); wrong != "" {
		t.Errorf("what is stored of each key and source is %s", wrong)
	}
	for _, h := range in.table("web").History {
		t.Logf("%s %s: %s", h.Kind, h.Outcome, h.Reason)
	}
}

// slowNode takes runs in 100 ms each, those of a partition that is slow, and the others at once.
type slowNode struct {
	slow    atomic.Int32
	mu      sync.Mutex
	account *account
	runs    map[string][]nodeRun // by partition
	t       *testing.T
}

type nodeRun struct {
	body                []byte
	encoding, mediaType string
}

func (n *slowNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.Header.Get(forward.HeaderPartition) == fmt.Sprint(n.slow.Load()) {
		<-time.After(100 * time.Millisecond)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	run := nodeRun{body, r.Header.Get("Content-Encoding"), r.Header.Get("Content-Type")}
	n.runs[r.Header.Get(forward.HeaderPartition)] = append(n.runs[r.Header.Get(forward.HeaderPartition)], run)
	err = consume.Decode(run.body, run.encoding, run.mediaType, func(e consume.Event) error {
		n.account.add(n.t, e.Data)
		return nil
	})
	if err != nil {
		n.t.Error(err)
	}
}

// The partition that a key leaves is slower than all that it goes to: only what waits for it keeps the order.
func TestOrderIsKeptWhenASlowPartitionIsLeft(t *testing.T) {
	node := &slowNode{t: t, account: newAccount(sources), runs: map[string][]nodeRun{}}
	server := httptest.NewServer(node)
	defer server.Close()
	cfg := zero(t)
	cfg.Backends["nodes"] = config.Backend{Webhook: &config.Webhook{Nodes: []string{server.URL}}}
	cfg.Streams = map[string]config.Stream{"web": adaptiveStream(func(s *config.Stream) { s.Backend = "nodes" })}
	in := start(t, cfg)
	defer in.end()
	place, err := in.Explain(t.Context(), "web", []byte("hot"), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	var at shownPlace
	if err := json.Unmarshal(place, &at); err != nil {
		t.Fatal(err)
	}
	node.slow.Store(*at.Partition)
	f := in.flood("web")
	in.untilTable("web", "split and even", isEven)
	f.calm.Store(true)
	in.untilTable("web", "merged", isMerged)
	f.end()
	in.delivered()
	node.mu.Lock()
	defer node.mu.Unlock()
	f.compare(node.account, true)

	// A reader that reads one partition to its end and then the next finds the same order again.
	again := newAccount(sources)
	order := consume.NewOrder(consume.OrderConfig{}, func(e consume.Event) error {
		again.add(t, e.Data)
		return nil
	})
	for _, partition := range slices.Sorted(maps.Keys(node.runs)) {
		for _, run := range node.runs[partition] {
			if err := order.Add(run.body, run.encoding, run.mediaType); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.compare(again, true)
	if s := order.Stats(); s.Waited == 0 || s.Waiting > 0 {
		t.Errorf("frames named no predecessors, or wrong ones: %+v, blocked %+v", s, order.Blocked())
	}
}

// Bounds of the stream are kept, whatever the load is; and what orders a key never splits it.
func TestK08FanoutIsBoundedAndStrictIsNeverSplit(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{
		"bounded": adaptiveStream(func(s *config.Stream) { // it stays split, also when the load is interrupted
			s.Ordering, s.Adaptive.MaxPartitions, s.Adaptive.Hold = "none", 2, settings.Duration(30*time.Minute)
		}),
		"strict": adaptiveStream(func(s *config.Stream) { s.Ordering = "strict" }),
		"off":    adaptiveStream(func(s *config.Stream) { s.Ordering, s.Adaptive.Off = "none", true }),
	}
	in := start(t, cfg)
	defer in.end()
	var floods []*flood
	for name := range cfg.Streams {
		floods = append(floods, in.flood(name))
	}
	in.untilTable("bounded", "split", isSplit)
	in.until("the strict stream has seen the key", func() bool {
		doc, err := in.HotKeys(t.Context(), "strict")
		return err == nil && bytes.Contains(doc, []byte(`"keys":[{"key":"hot"`))
	})
	<-time.After(500 * time.Millisecond)
	if s := in.table("bounded").Splits[0]; s.Fanout != 2 || in.table("bounded").Adaptive.MaxPartitions != 2 {
		t.Errorf("%+v", s)
	}
	for _, name := range []string{"strict", "off"} {
		if table := in.table(name); len(table.Splits) > 0 || table.Adaptive.On != (name == "strict") {
			t.Errorf("%s: %+v", name, table.Splits)
		}
	}
	for _, f := range floods {
		f.end()
	}
	for _, f := range floods {
		if f.stream == "strict" {
			f.compare(f.stored(), true)
		}
	}
}

func TestK01K02Murmur2Stream(t *testing.T) {
	cfg := zero(t)
	murmur := func(partitions int) config.Stream {
		return config.Stream{Key: config.Key{JSON: "/k"}, Hash: "murmur2", Partitions: config.Partitions{Max: partitions}}
	}
	cfg.Streams = map[string]config.Stream{"twelve": murmur(12), "ten": murmur(10)}
	in := start(t, cfg)
	in.want(200, `"accepted":3`, "twelve", "{\"k\":\"\"}\n{\"n\":1}\n{\"k\":\"\"}")
	in.want(200, `"accepted":1`, "ten", `{"k":"f562ac3b-2224-4e25-a0ab-56094e10c239"}`)
	for _, row := range in.rows("twelve") {
		if row.HasKey != (row.Slot == 9) || row.HasKey && row.Partition != 9 {
			t.Errorf("%+v", row)
		}
	}
	if rows := in.rows("ten"); len(rows) != 1 || rows[0].Partition != 5 {
		t.Errorf("%+v", rows)
	}
	if table := in.table("ten"); table.Hash != "murmur2" || table.Adaptive.On {
		t.Errorf("%+v", table)
	}
	in.end()
	cfg.Streams["ten"] = config.Stream{Partitions: config.Partitions{Max: 10}}.WithDefaults()
	cfg.HTTP.Listen, cfg.Admin.Listen, cfg.QUIC.Listen = "127.0.0.1:0", "127.0.0.1:0", "none"
	again, err := New(cfg, Deps{})
	if err == nil {
		err = again.Run(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "hash: the stream was made with murmur2") {
		t.Errorf("the hash changed: %v", err)
	}
}

// What a running stream can't change is refused by name; a looser ordering is obeyed at once, a stricter one of the file
// at the next start.
func TestOrderingCanBecomeLooser(t *testing.T) {
	cfg := zero(t)
	in := start(t, cfg)
	in.want(200, `"accepted":1`, "web", `{"key":"hot"}`)
	set := func(doc, refused string) {
		t.Helper()
		_, _, err := in.SetStream(t.Context(), "web", []byte(doc), admin.Match{})
		if refused == "" && err != nil || refused != "" && (err == nil || !strings.Contains(err.Error(), refused)) {
			t.Errorf("%s: %v, want %q", doc, err, refused)
		}
	}
	set(`{"ordering":"strict"}`, "ordering: can become looser")
	set(`{"hash":"murmur2"}`, "hash: cannot be changed")
	set(`{"adaptive":{"hold":"1ms"}}`, "hold")
	s := (*in.streams.Load())["web"]
	hi, lo := s.partitioner.Table().KeyHash(event.AsStream, []byte("hot"))
	terms := partitioner.SplitTerms{Born: time.Duration(time.Now().UnixMilli()) * time.Millisecond, Hold: time.Hour}
	split, err := s.partitioner.Table().SplitOn(hi, lo, []int32{1, 2}, terms)
	if err != nil {
		t.Fatal(err)
	}
	s.partitioner.Swap(split)
	set(`{"ordering":"none"}`, "")
	in.untilTable("web", "loose", func(table shownTable) bool { return len(table.Splits) == 1 && table.Splits[0].By == "load" })
	in.end()

	cfg.Streams = map[string]config.Stream{"web": config.Stream{Ordering: "source"}.WithDefaults()}
	in = start(t, cfg)
	if table := in.table("web"); len(table.Splits) != 0 {
		t.Errorf("%+v", table.Splits)
	}
	in.end()
}

// A gateway that starts with a table in which something is under way ends that first.
func TestWhatIsUnderWayIsEndedAfterARestart(t *testing.T) {
	cfg := zero(t)
	in := start(t, cfg)
	in.want(200, `"accepted":1`, "web", `{"key":"hot"}`)
	s := (*in.streams.Load())["web"]
	table := s.partitioner.Table()
	hi, lo := table.KeyHash(event.AsStream, []byte("hot"))
	on := []int32{1, 2, 3, 4}
	begun, err := table.Begin(partitioner.Plan{Changes: []partitioner.Change{{Kind: partitioner.SplitKey, Hi: hi, Lo: lo, Partitions: on}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.adaptive.stored.write(t.Context(), begun); err != nil {
		t.Fatal(err)
	}
	in.end()
	in = start(t, cfg)
	after := in.untilTable("web", "ended", func(table shownTable) bool { return len(table.Splits) == 1 && len(table.UnderWay) == 0 })
	if after.Version != begun.Version()+1 {
		t.Errorf("table %d after %d", after.Version, begun.Version())
	}
	in.want(200, `"accepted":1`, "web", `{"key":"hot"}`)
	in.end()
}
