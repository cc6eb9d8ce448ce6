package plugins

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/headgate-io/headgate/event"
)

// accessLog returns lines of the sample that comes with the example plugin, as often as needed for n events.
func accessLog(t testing.TB, n int) *event.Batch {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "examples", "plugins", "accesslog", "sample.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	b := &event.Batch{Stream: "web", Syntax: event.JSON}
	for i := range n {
		b.Events = append(b.Events, event.Event{Data: lines[i%len(lines)]})
	}
	return b
}

func exampleChain(t testing.TB, config string) *Chain {
	t.Helper()
	h := hostOf(t, Config{Instances: 1, CacheDir: filepath.Join(scratch, "compiled")})
	return chainOf(t, h, Step{Name: "accesslog", Module: loadOf(t, h, example(t)), Config: []byte(config)})
}

func TestExample(t *testing.T) {
	c := exampleChain(t, `{"drop_status_from": 500}`)
	b := batchOf(
		`{"response":200,"remote_ip":"10.0.0.1"}`,
		`{"remote_ip":"10.0.0.2","response":500}`,
		`{"remote_ip":"10.0.0.3","response":499}`,
		`{"response":"500","remote_ip":"10.0.0.4"}`,
		`{"remote_ip":"\u0031"}`,
		`{"remote_ip":"a","remote_ip":"b"}`,
		`{"remote_ip":7}`,
		`[]`,
		``,
	)
	process(t, c, b)
	want := "accepted key=10.0.0.1\nfiltered\naccepted key=10.0.0.3\naccepted key=10.0.0.4\naccepted key=1\naccepted\naccepted\naccepted\naccepted\n"
	if got := outcomes(b); got != want {
		t.Errorf("got\n%s want\n%s", got, want)
	}
}

// Without a configuration nothing is dropped.
func TestExampleWithoutConfig(t *testing.T) {
	b := batchOf(`{"remote_ip":"10.0.0.2","response":500}`)
	process(t, exampleChain(t, ""), b)
	if got := outcomes(b); got != "accepted key=10.0.0.2\n" {
		t.Errorf("got %s", got)
	}
}

// On the whole access log, where it is at hand: 3 of 9,999 lines have a response of 500 or more.
func TestExampleOnTheAccessLog(t *testing.T) {
	dir := os.Getenv("HEADGATE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "data")
	}
	f, err := os.Open(filepath.Join(dir, "access-log.ndjson"))
	if err != nil {
		t.Skip("no sample data: ", err)
	}
	defer f.Close()
	b := &event.Batch{Stream: "web", Syntax: event.JSON}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		b.Events = append(b.Events, event.Event{Data: bytes.Clone(lines.Bytes())})
	}
	process(t, exampleChain(t, `{"drop_status_from":500}`), b)
	if c := b.Counts(); c.Accepted != 9996 || c.Filtered != 3 || c.Rejected != 0 {
		t.Errorf("counts %+v", c)
	}
	for i, e := range b.Events {
		if e.Verdict == event.Keep && !(e.HasKey && bytes.Contains(e.Data, append([]byte(`"remote_ip":"`), e.Key...))) {
			t.Fatalf("event %d: key %q", i, e.Key)
		}
	}
}

func TestProcessDoesNotAllocate(t *testing.T) {
	c := exampleChain(t, `{"drop_status_from":500}`)
	b := accessLog(t, 1000)
	ctx := context.Background()
	once := func() {
		for i := range b.Events {
			b.Events[i].Verdict, b.Events[i].HasKey = event.Keep, false
		}
		if err := c.Process(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	once() // the regions grow
	if n := testing.AllocsPerRun(20, once); n > 0 {
		t.Errorf("%v allocations a batch of %d events", n, len(b.Events))
	}
}

func BenchmarkGoExample(b *testing.B) {
	benchmark(b, exampleChain(b, `{"drop_status_from":500}`))
}

// The host side alone: hand-over, call, checks.
func BenchmarkIdleGuest(b *testing.B) {
	h := hostOf(b, Config{Instances: 1})
	benchmark(b, chainOf(b, h, Step{Name: "idle", Module: loadOf(b, h, idle().bytes())}))
}

func benchmark(b *testing.B, c *Chain) {
	batch := accessLog(b, 256)
	size := 0
	for _, e := range batch.Events {
		size += len(e.Data)
	}
	ctx := context.Background()
	b.ReportAllocs()
	before := cpuTime()
	for b.Loop() {
		for i := range batch.Events {
			batch.Events[i].Verdict, batch.Events[i].HasKey = event.Keep, false
		}
		if err := c.Process(ctx, batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N*len(batch.Events)), "cpu-ns/event")
	b.ReportMetric(float64(size)/float64(len(batch.Events)), "B/event")
}
