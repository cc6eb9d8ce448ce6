package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/partitioner"
)

func small(o partitioner.Ordering) Config {
	return Config{Partitions: 20, Gateways: 3, Producers: 2000, Rate: 20_000, Ordering: o, Events: 300_000, Warmup: 300_000, Seed: 1}
}

func simulated(t *testing.T, c Config, from Source) *Tally {
	t.Helper()
	tally, err := Run(context.Background(), c, from)
	if err != nil {
		t.Fatal(err)
	}
	return tally
}

func TestBalanceIsBetterThanHashingAndTwoChoice(t *testing.T) {
	for o, most := range map[partitioner.Ordering]float64{partitioner.Unordered: 1.02, partitioner.BySource: 1.15, partitioner.Strict: 1.1} {
		r := simulated(t, small(o), NewZipf(1.5, 5000, 4000, 1)).Result
		h := r.Headgate
		if h.MaxOverMean > most*h.Bound {
			t.Errorf("%v: max/mean %.3f, bound %.3f", o, h.MaxOverMean, h.Bound)
		}
		if r.Hashing.MaxOverMean < 5 || r.TwoChoice.MaxOverMean < 2 || r.TwoChoice.MaxOverMean > r.Hashing.MaxOverMean {
			t.Errorf("hashing %.3f, two-choice %.3f: the stream is not the one that was meant", r.Hashing.MaxOverMean, r.TwoChoice.MaxOverMean)
		}
		if (h.KeysSplit == 0) != (o == partitioner.Strict) || h.KeysSplit > 50 {
			t.Errorf("%v: %d keys split", o, h.KeysSplit)
		}
		if h.Replication < 1 || h.Replication > 1.2 || r.TwoChoice.Replication < h.Replication || r.Hashing.Replication != 1 {
			t.Errorf("%v: replication %.3f, two-choice %.3f", o, h.Replication, r.TwoChoice.Replication)
		}
	}
}

func TestSameSeedSameRun(t *testing.T) {
	c := small(partitioner.BySource)
	c.Events, c.Warmup = 50_000, 10_000
	var out []string
	for _, seed := range []uint64{1, 1, 2} {
		c.Seed = seed
		doc, err := json.Marshal(simulated(t, c, NewZipf(1, 1000, 4000, seed)).Result)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(doc))
	}
	if out[0] != out[1] || out[0] == out[2] {
		t.Errorf("%s", strings.Join(out, "\n"))
	}
}

// Ten million keys that come once each look like no heavy key.
func TestUniqueKeysSplitNothing(t *testing.T) {
	h := simulated(t, small(partitioner.Unordered), NewZipf(0, 2_000_000, 4000, 1)).Result.Headgate
	if h.KeysSplit != 0 || h.MaxOverMean > 1.05 {
		t.Errorf("%+v", h)
	}
}

func TestDriftMovesTheLoadAlong(t *testing.T) {
	c := small(partitioner.Unordered)
	z := NewZipf(1.4, 5000, 4000, 1)
	z.Drift = 100_000
	h := simulated(t, c, z).Result.Headgate
	if h.MaxOverMean > 1.3 || h.KeysSplit < 10 {
		t.Errorf("%+v", h)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	c := small(partitioner.Unordered)
	c.Progress = func(done, _ int, _ *Tally) {
		if done > 10_000 {
			cancel()
		}
	}
	if _, err := Run(ctx, c, NewZipf(1, 100, 1, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestZipfHasTheSharesOfZipf(t *testing.T) {
	for _, z := range []float64{0, 1, 2} {
		const keys, events = 50, 200_000
		s, counts, sum := NewZipf(z, keys, 1, 9), make([]float64, keys), 0.0
		for n := range events {
			counts[s.Event(n).Key]++
		}
		for i := range keys {
			sum += math.Pow(float64(i+1), -z)
		}
		for i := range keys {
			want := math.Pow(float64(i+1), -z) / sum * events
			if math.Abs(counts[i]-want) > 5*math.Sqrt(want)+1 {
				t.Errorf("z = %v: key %d came %v times, want %.0f", z, i, counts[i], want)
			}
		}
	}
}

func pointer(t *testing.T, s string) jsonscan.Pointer {
	t.Helper()
	p, err := jsonscan.ParsePointer(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTraceTakesTheKeyAtThePointer(t *testing.T) {
	text := `{"a":{"b":"x"}}` + "\n\n" + `{"a":{"b":7}}` + "\r\n" + `{"a":{"b":null}}` + "\n" + `{"a":{"b":[1]}}` + "\n" + `{}` + "\n" + `{"a":{"b":"\u0078"}}`
	tr, err := ReadTrace(strings.NewReader(text), pointer(t, "/a/b"), 10)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(tr.Keys(), ",") != "x,7" || tr.Len() != 3 || tr.Keyless != 3 {
		t.Errorf("keys %q, %d events, %d without", tr.Keys(), tr.Len(), tr.Keyless)
	}
	if e := tr.Event(5); e.Key != 0 || e.Weight != 30 {
		t.Errorf("%+v", e)
	}
	for _, bad := range []string{"", "\n", `{"a":1}`, `{"a":{"b":"x"}`, "nonsense"} {
		if _, err := ReadTrace(strings.NewReader(bad), pointer(t, "/a/b"), 0); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestPlotIsXMLWhateverHappened(t *testing.T) {
	c := small(partitioner.BySource)
	for _, events := range []int{1, 100, 200_000} {
		c.Events, c.Warmup = events, 0
		var picture bytes.Buffer
		if err := simulated(t, c, NewZipf(2, 1000, 4000, 1)).WriteSVG(&picture); err != nil {
			t.Fatal(err)
		}
		lines, d := 0, xml.NewDecoder(&picture)
		for {
			token, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%d events: %v", events, err)
			}
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "polyline" {
				lines++
			}
		}
		if events > 1000 && lines != c.Partitions+1 {
			t.Errorf("%d lines for %d partitions and the fullest", lines, c.Partitions)
		}
	}
}
