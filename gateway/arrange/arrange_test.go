package arrange

import (
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/forward/jetstream"
	"github.com/headgate-io/headgate/internal/compress"
	"github.com/headgate-io/headgate/sdk/wire"
)

// storedRun is a run of one event in a partition, with predecessors.
func storedRun(t *testing.T, partition int32, number uint64, after ...wire.Predecessor) *jetstream.Message {
	t.Helper()
	codec, err := compress.ByName("zstd")
	if err != nil {
		t.Fatal(err)
	}
	raw := wire.AppendEvent(nil, []byte("{}"), wire.NDJSON)
	data := codec.Append(nil, raw)
	meta := wire.Meta{Gateway: "g", Stream: "s", Partition: uint32(partition), First: number, Framing: wire.NDJSON, After: after,
		Routes: []wire.Route{{Slot: wire.None, Child: wire.None}}, EventRoute: []uint32{0}, RawLen: uint64(len(raw)), DataLen: uint64(len(data))}
	return &jetstream.Message{Partition: partition, Gateway: "g", First: number, Last: number, ContentEncoding: codec.ContentEncoding(),
		Payload: wire.AppendFrame(nil, "zstd", wire.AppendMeta(nil, &meta, raw), data)}
}

func TestRunsOfSeveralStreamsAreArranged(t *testing.T) {
	after := func(partition uint32, number uint64) wire.Predecessor {
		return wire.Predecessor{Partition: partition, Gateway: "g", Number: number}
	}
	var got []int32
	now := time.Unix(0, 0)
	begin := func(lenient bool) *Arranger {
		got = nil
		return New(lenient, func(m *jetstream.Message) error {
			got = append(got, 10*m.Partition+int32(m.First))
			return nil
		})
	}
	add := func(a *Arranger, all ...*jetstream.Message) {
		t.Helper()
		for _, m := range all {
			if err := a.Add(m, now); err != nil {
				t.Fatal(err)
			}
		}
	}
	a := begin(false)
	add(a, storedRun(t, 1, 1, after(0, 2)), storedRun(t, 1, 2), storedRun(t, 2, 1, after(1, 2)), storedRun(t, 0, 1), storedRun(t, 0, 2))
	if !slices.Equal(got, []int32{1, 2, 11, 12, 21}) {
		t.Errorf("came as %v", got)
	}
	add(a, storedRun(t, 3, 1, after(0, 9)))
	add(a, &jetstream.Message{Partition: 0, Gateway: "g", Last: 9, Marker: true}) // what was before it has been purged
	if len(got) != 6 {
		t.Errorf("a marker did not tell: %v", got)
	}
	add(a, storedRun(t, 3, 2, after(0, 99)))
	now = now.Add(arrangeFor)
	add(a, storedRun(t, 2, 2))
	if len(got) != 8 {
		t.Errorf("it waits for ever: %v", got)
	}
	add(a, storedRun(t, 3, 3, after(0, 100)))
	if err := a.Rest(); err != nil || len(got) != 9 || a.held != 0 {
		t.Errorf("at the end: %v, %v", got, err)
	}
	if add(begin(true), storedRun(t, 1, 1, after(0, 2))); len(got) != 1 {
		t.Error("who reads what is new waits for what was before")
	}
}
