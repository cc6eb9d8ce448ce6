package main

import (
	"encoding/json"
	"testing"

	"github.com/headgate-io/headgate/internal/simulate"
)

// 20,000 events of 1,064 bytes a second are 20.3 MiB: with a target of 2 MiB they are 11 partitions' load.
func TestSimulatePartitionsThatFollowTheLoad(t *testing.T) {
	r := command(t, "", "simulate", "--zipf", "0", "--keys", "5000", "--size", "1000", "--partitions", "2..16", "--target", "2MiB/s", "--rate", "20000", "--events", "200000", "--json")
	r.expect(t, 0)
	var out simulate.Result
	if err := json.Unmarshal([]byte(r.out), &out); err != nil {
		t.Fatal(err)
	}
	if h := out.Headgate; h.Active < 10 || h.Active > 12 || h.Added != h.Active-2 || h.Drained != 0 {
		t.Errorf("%+v", h)
	}
	for _, bounds := range []string{"4..2", "2..300", "2..", "0", "two"} {
		command(t, "", "simulate", "--target", "1MiB/s", "--partitions", bounds).expect(t, 2, "--partitions is 1 to 256")
	}
	command(t, "", "simulate", "--partitions", "2..4").expect(t, 2, "needs --target")
	command(t, "", "simulate", "--target", "fast").expect(t, 2, "--target is what a partition is meant to take")
}
