package forwardtest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/sdk/consume"
	"github.com/headgate-io/headgate/sdk/wire"
)

// What runs and forwarders of this package are called by. A backend under test has to be opened for them.
const (
	Stream  = "web"
	Gateway = "00112233aabbccdd"
)

// NewRun makes a run of one frame of the given events, not compressed; none of them contains a newline.
func NewRun(partition int32, first uint64, events ...string) *forward.Run {
	var payload []byte
	for _, e := range events {
		payload = wire.AppendEvent(payload, []byte(e), wire.NDJSON)
	}
	return &forward.Run{
		Stream: Stream, Partition: partition, First: first, Last: first + uint64(len(events)) - 1, Events: len(events), Frames: 1,
		TableVersion: 7, ContentType: wire.TypeNDJSON, Payload: payload,
		ID: wire.RunID(wire.FrameID(Gateway, Stream, uint32(partition), first), 1),
	}
}

// Events returns the data of the events of runs; it ends the test when one can't be read or lies about itself.
func Events(t testing.TB, runs ...forward.Run) (all []string) {
	t.Helper()
	for _, run := range runs {
		before := len(all)
		err := consume.Decode(run.Payload, run.ContentEncoding, run.ContentType, func(e consume.Event) error {
			all = append(all, string(e.Data))
			return nil
		})
		if err != nil {
			t.Fatalf("run %s: %v", run.ID, err)
		}
		if n := len(all) - before; n != run.Events || run.Last-run.First+1 != uint64(n) {
			t.Fatalf("run %s says %d events, %d to %d, and has %d", run.ID, run.Events, run.First, run.Last, n)
		}
	}
	return all
}

// Lane returns the runs of a partition.
func Lane(runs []forward.Run, partition int32) (lane []forward.Run) {
	for _, run := range runs {
		if run.Partition == partition {
			lane = append(lane, run)
		}
	}
	return lane
}

// Contains tells whether an event of the run contains the word.
func Contains(t testing.TB, run *forward.Run, word string) bool {
	return strings.Contains(strings.Join(Events(t, *run), "\n"), word)
}

// same tells whether a stored run is the one sent. How many frames it has is not told by every backend.
func same(stored, sent forward.Run) bool {
	equal := bytes.Equal(stored.Payload, sent.Payload)
	stored.Payload, sent.Payload, stored.Frames = nil, nil, sent.Frames
	return equal && fmt.Sprint(stored) == fmt.Sprint(sent)
}
