package jetstream_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
	"github.com/headgate-io/headgate/forward/jetstream"
)

func TestContract(t *testing.T) {
	forwardtest.Run(t, func(t *testing.T) *forwardtest.Harness {
		const maxBytes = 1 << 20
		r := newRig(t, t.TempDir(), maxBytes)
		return &forwardtest.Harness{
			Backend: r.backend, Stored: r.runs, Checks: true, Close: r.server.Close,
			Reopen:  func() forward.Backend { return r.open(maxBytes) },
			Refused: noise(int(r.conn.MaxPayload()) * 3 / 2), RefusedCode: event.EventTooLarge,
			Full:       r.fill,
			LoseAnswer: func() { r.lose(forwardtest.NewRun(0, 1, "a")) },
		}
	})
}

// runs reads back what the stream holds, but for what fill has put there.
func (r *rig) runs() (all []forward.Run) {
	for _, m := range r.read(jetstream.Query{}) {
		if m.Gateway == gateway {
			all = append(all, forward.Run{
				Stream: m.Stream, Partition: m.Partition, First: m.First, Last: m.Last, Events: m.Events, TableVersion: m.TableVersion,
				ContentType: m.ContentType, ContentEncoding: m.ContentEncoding, ID: m.ID, Payload: m.Payload,
			})
		}
	}
	return all
}

// fill stores messages of another gateway until not even a small one goes in any more.
func (r *rig) fill() (drain func()) {
	r.t.Helper()
	const subject = "headgate.web.99.filler"
	for size := 64 << 10; size > 0; size /= 2 {
		for {
			if _, err := r.side.Publish(r.t.Context(), subject, make([]byte, size)); err != nil {
				break
			}
		}
	}
	return func() {
		stream, err := r.side.Stream(r.t.Context(), "HEADGATE_web")
		if err == nil {
			err = stream.Purge(r.t.Context(), js.WithPurgeSubject(subject))
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// lose stores a run as a publish does whose answer never comes.
func (r *rig) lose(run *forward.Run) {
	r.put(run.Partition, nats.Header{
		"Nats-Msg-Id": {run.ID}, "Headgate-Stream": {run.Stream}, "Headgate-Partition": {fmt.Sprint(run.Partition)},
		"Headgate-First-Seq": {fmt.Sprint(run.First)}, "Headgate-Last-Seq": {fmt.Sprint(run.Last)}, "Headgate-Count": {fmt.Sprint(run.Events)},
		"Headgate-Table-Version": {fmt.Sprint(run.TableVersion)}, "Content-Type": {run.ContentType},
	}, run.Payload)
}

// noise returns n letters that no codec makes smaller than three quarters of them.
func noise(n int) string {
	var text strings.Builder
	for x := uint64(1); text.Len() < n; x = x*6364136223846793005 + 1442695040888963407 {
		text.WriteByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[x>>58])
	}
	return text.String()
}
