package gateway

import (
	"os"
	"strconv"
	"testing"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/internal/race"
)

// Whatever gets lost, comes late or twice, and wherever the process crashes: nothing that was acknowledged is lost, nothing is
// there twice, the order of each key and source is kept, and nothing waits for ever. FENCE=n runs so many worlds; FENCE_SEED=n
// runs one, and prints what happened in it. In half of them the server outlives the process, and what that has sent arrives; with
// FENCE_EXTERNAL=1 in all.
func TestFenceUnderFaults(t *testing.T) {
	presses := forward.NewPresses(2)
	if seed, err := strconv.ParseUint(os.Getenv("FENCE_SEED"), 10, 64); err == nil {
		w := runFenceBy(t, seed, ablation(os.Getenv("FENCE_WITHOUT")), presses, fenceMode(seed%3 == 1))
		t.Log(w)
		if len(w.complaints) > 0 {
			t.Fail()
		}
		return
	}
	schedules, events, fences, removed, failed := 500, 0, 0, 0, 0
	if race.Enabled {
		schedules = 50 // each takes ten times as long
	}
	if n, err := strconv.Atoi(os.Getenv("FENCE")); err == nil {
		schedules = n
	}
	for seed := range uint64(schedules) {
		w := runFenceBy(t, seed, nothing, presses, fenceMode(seed%3 == 1))
		events += len(w.fates)
		fences += int(w.fenced.Load())
		removed += w.server.removed
		if len(w.complaints) > 0 {
			if failed++; failed <= 3 {
				t.Error(w)
			}
		}
	}
	t.Logf("%d schedules, %d failed: %d events, %d fences, %d claims replaced", schedules, failed, events, fences, removed)
}

// A protocol without one of its parts must fail, or the test above could not.
func TestFenceNeedsAllItsParts(t *testing.T) {
	presses := forward.NewPresses(2)
	const most = 60
	for _, part := range []ablation{copied, minVersion, mark, parking, waiting, anotherEpoch, chainCheck, claim} {
		t.Run(string(part), func(t *testing.T) {
			for seed := range uint64(most) {
				w := runFence(t, seed, part, presses)
				if len(w.complaints) == 0 {
					continue
				}
				if part == copied {
					t.Fatal(w)
				}
				t.Logf("seed %d: %s", seed, w.complaints[0])
				return
			}
			if part != copied {
				t.Errorf("nothing failed in %d schedules", most)
			}
		})
	}
}
