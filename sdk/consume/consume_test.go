package consume

import (
	"testing"

	"github.com/headgate-io/headgate/internal/compress"
	"github.com/headgate-io/headgate/sdk/wire"
)

func TestSmoke(t *testing.T) {
	c, _ := compress.ByName("zstd")
	raw := []byte("{\"ip\":\"10.0.0.1\"}\n{\"ip\":\"10.0.0.2\"}\n{\"ip\":\"10.0.0.1\"}\n")
	data := c.Append(nil, raw)
	m := wire.Meta{Gateway: "g", Stream: "s", Partition: 3, First: 1, RawLen: uint64(len(raw)), DataLen: uint64(len(data)),
		Routes:     []wire.Route{{Key: []byte("10.0.0.1"), HasKey: true, Slot: 4, Child: -1}, {Key: []byte("10.0.0.2"), HasKey: true, Slot: 3, Child: -1}},
		EventRoute: []uint32{0, 1, 0}, Epochs: []wire.SlotEpoch{{Slot: 4, Epoch: 1}, {Slot: 3, Epoch: 2}}, Requests: []wire.Request{{Count: 3, Time: 77}}}
	run := wire.AppendFrame(nil, "zstd", wire.AppendMeta(nil, &m, raw), data)
	run = append(run, run...)
	if err := Decode(run, "zstd", "application/x-ndjson", func(e Event) error { t.Logf("%+v %s %s", e, e.Key, e.Data); return nil }); err != nil {
		t.Fatal(err)
	}
}
