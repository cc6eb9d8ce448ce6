package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSimulatePrintsTheResultAsJSON(t *testing.T) {
	r := command(t, "", "simulate", "--zipf", "1.5", "--keys", "1000", "--events", "50000", "--warmup", "50000", "--rate", "20000", "--size", "4000",
		"--partitions", "10", "--ordering", "none", "--json").expect(t, 0)
	var got struct {
		Headgate struct {
			MaxOverMean float64 `json:"max_over_mean"`
			Imbalance   *float64
			Splits      int
			Moves       *int
			KeysSplit   int `json:"keys_split"`
			Replication float64
		}
		Hashing   map[string]float64
		TwoChoice map[string]float64 `json:"two_choice"`
		Events    int
	}
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		t.Fatal(err)
	}
	h := got.Headgate
	if h.MaxOverMean < 1 || h.MaxOverMean > 1.2 || h.Imbalance == nil || h.Moves == nil || h.KeysSplit < 1 || h.Splits < h.KeysSplit || h.Replication < 1 {
		t.Errorf("%+v", h)
	}
	if got.Hashing["max_over_mean"] < 2 || got.TwoChoice["max_over_mean"] < 1 || got.Events != 50000 {
		t.Errorf("%s", r.out)
	}
}

func TestSimulateReadsATraceAndPlots(t *testing.T) {
	trace := temporary(t, "trace.ndjson", strings.Repeat(`{"user":"a"}`+"\n"+`{"user":"b"}`+"\n"+`{"user":"a","n":1}`+"\n", 100))
	plot := filepath.Join(t.TempDir(), "load.svg")
	r := command(t, "", "simulate", "--trace", trace, "--key", "/user", "--partitions", "4", "--events", "1000", "--warmup", "0", "--rate", "1000", "--plot", plot)
	r.expect(t, 0)
	if !strings.HasPrefix(r.out, "1000 events of 2 keys on 4 partitions") || !strings.Contains(r.out, "hashing") {
		t.Errorf("%s", r.out)
	}
	if picture, err := os.ReadFile(plot); err != nil || !strings.HasPrefix(string(picture), "<svg ") {
		t.Errorf("%.100s, %v", picture, err)
	}
}

func TestSimulateSaysWhatIsWrong(t *testing.T) {
	for args, part := range map[string]string{
		"--partitions 0":              "--partitions is 1 to 256",
		"--partitions 257":            "--partitions is 1 to 256",
		"--ordering any":              "strict, source or none",
		"--trace x":                   "belong together",
		"--key /a":                    "belong together",
		"--trace x --key a":           "must start with a slash",
		"--trace /nowhere/x --key /a": "/nowhere/x",
		"--zipf -1":                   "--zipf 0 to 10",
		"--rate 0":                    "--rate",
		"--gateways 0":                "--gateways",
	} {
		command(t, "", append([]string{"simulate"}, strings.Fields(args)...)...).expect(t, 2, part)
	}
	command(t, "{\"a\":\n", "simulate", "--trace", "-", "--key", "/a").expect(t, 1, "line 1")
	command(t, "{\"b\":1}\n", "simulate", "--trace", "-", "--key", "/a").expect(t, 1, "no line has a key")
}
