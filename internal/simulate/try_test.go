package simulate

import (
	"context"
	"encoding/json"
	"github.com/headgate-io/headgate/partitioner"
	"os"
	"strconv"
	"testing"
)

func TestTry(t *testing.T) {
	f := func(n string, d float64) float64 {
		if v, e := strconv.ParseFloat(os.Getenv(n), 64); e == nil {
			return v
		}
		return d
	}
	ev := int(f("EV", 1e6))
	c := Config{Partitions: int(f("N", 100)), Gateways: 5, Producers: 10000, Rate: 1e5, Ordering: partitioner.Ordering(f("ORD", 2)), Events: ev, Warmup: int(f("WU", 1e6)), Seed: 1}
	tl, err := Run(context.Background(), c, NewZipf(f("Z", 2), int(f("K", 1e4)), 512+64, 1))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.MarshalIndent(tl.Result, "", " ")
	t.Logf("%s", b)
	if os.Getenv("V") != "" {
		for _, s := range tl.Seconds {
			for i, c := range s.Changes {
				if i < 40 {
					t.Log(s.At, c)
				}
			}
			for _, n := range s.Notes {
				t.Log(s.At, n)
			}
			t.Logf("%v %.3f", s.At, outcome(s.Partitions, 0).MaxOverMean)
		}
	}
}
