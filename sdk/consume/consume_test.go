package consume

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/headgate-io/headgate/internal/compress"
	"github.com/headgate-io/headgate/sdk/wire"
)

// frame returns a frame as a gateway seals it: every event has a key of its own value but the last, whose key
// is null; the second has an id, a time and an attribute.
func frame(t testing.TB, codec string, framing wire.Framing, first uint64, events ...string) []byte {
	t.Helper()
	c, err := compress.ByName(codec)
	if err != nil {
		t.Fatal(err)
	}
	m := wire.Meta{Gateway: "gw", Stream: "web", Partition: 3, First: first, Framing: framing}
	var raw []byte
	for i, e := range events {
		raw = wire.AppendEvent(raw, []byte(e), framing)
		slot := int32(i % 4)
		route := wire.Route{Key: []byte(e), HasKey: true, Slot: slot, Child: wire.None}
		if slot == 1 {
			route.Child = 64
		}
		if i == len(events)-1 {
			route = wire.Route{Slot: wire.None, Child: wire.None}
		}
		m.Routes, m.EventRoute = append(m.Routes, route), append(m.EventRoute, uint32(i))
		m.IDs, m.Times, m.Attrs = append(m.IDs, nil), append(m.Times, 0), append(m.Attrs, nil)
	}
	if len(events) > 1 {
		m.IDs[1], m.Times[1], m.Attrs[1] = []byte("id-1"), 1e18, []wire.Attr{{Name: []byte("type"), Value: []byte("t")}}
	}
	m.Epochs = []wire.SlotEpoch{{Slot: 0, Epoch: 10}, {Slot: 2, Epoch: 12}, {Slot: 3, Epoch: 13}, {Slot: 64, Epoch: 5}}
	m.Requests = []wire.Request{
		{Count: 1, Time: 100, Source: []byte("a"), TraceParent: []byte("tp")}, {}, {Count: uint32(len(events) - 1), Time: 200, Source: []byte("b")},
	}
	data := c.Append(nil, raw)
	m.RawLen, m.DataLen = uint64(len(raw)), uint64(len(data))
	return wire.AppendFrame(nil, codec, wire.AppendMeta(nil, &m, raw), data)
}

// show is an event as one line.
func show(e Event) string {
	key := "null"
	if e.HasKey {
		key = fmt.Sprintf("%q", e.Key)
	}
	return fmt.Sprintf("%s/%d/%s/%d slot %d child %d epoch %d key %s id %q time %d from %q trace %q attrs %q data %q",
		e.Stream, e.Partition, e.Gateway, e.Number, e.Slot, e.Child, e.Epoch, key, e.ID, e.Time, e.Source, e.TraceParent, e.Attrs, e.Data)
}

func decode(payload []byte, encoding, contentType string) (events []string, err error) {
	err = Decode(payload, encoding, contentType, func(e Event) error {
		events = append(events, show(e))
		return nil
	})
	return events, err
}

func TestARunBecomesEvents(t *testing.T) {
	for _, codec := range []string{"zstd", "s2", "lz4"} {
		run := frame(t, codec, wire.NDJSON, 7, `{"a":1}`, `{"a":2}`, "")
		run = append(run, frame(t, codec, wire.Prefixed, 10, "with\nnewline", "last")...)
		got, err := decode(run, codec, wire.TypeNDJSON)
		if err != nil {
			t.Fatalf("%s: %v", codec, err)
		}
		want := []string{
			`web/3/gw/7 slot 0 child -1 epoch 10 key "{\"a\":1}" id "" time 100 from "a" trace "tp" attrs [] data "{\"a\":1}"`,
			`web/3/gw/8 slot 1 child 64 epoch 5 key "{\"a\":2}" id "id-1" time 1000000000000000000 from "b" trace "" attrs [{"type" "t"}] data "{\"a\":2}"`,
			`web/3/gw/9 slot -1 child -1 epoch 0 key null id "" time 200 from "b" trace "" attrs [] data ""`,
			`web/3/gw/10 slot 0 child -1 epoch 10 key "with\nnewline" id "" time 100 from "a" trace "tp" attrs [] data "with\nnewline"`,
			`web/3/gw/11 slot -1 child -1 epoch 0 key null id "id-1" time 1000000000000000000 from "b" trace "" attrs [{"type" "t"}] data "last"`,
		}
		if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
			t.Errorf("%s: got\n%s\nwant\n%s", codec, g, w)
		}
	}
}

func TestPayloadsWithoutMetadata(t *testing.T) {
	for _, codec := range []string{"none", "gzip", "zstd", "s2", "lz4"} {
		c, err := compress.ByName(codec)
		if err != nil {
			t.Fatal(err)
		}
		payload := append(c.Append(nil, []byte("{}\n\n")), c.Append(nil, []byte("{\"n\":1}\n"))...)
		got, err := decode(payload, c.ContentEncoding(), "application/x-ndjson; charset=utf-8")
		zero := `/0//0 slot -1 child -1 epoch 0 key null id "" time 0 from "" trace "" attrs [] data `
		if want := []string{zero + `"{}"`, zero + `""`, zero + `"{\"n\":1}"`}; err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: %v\n%s", codec, err, strings.Join(got, "\n"))
		}
	}
	if got, err := decode(nil, "", wire.TypePrefixed); err != nil || len(got) != 0 {
		t.Error("an empty payload:", got, err)
	}
}

func TestDecodeRefusesOtherHeaders(t *testing.T) {
	for _, h := range [][2]string{{"br", wire.TypeNDJSON}, {"zstd, gzip", wire.TypeNDJSON}, {"zstd", "application/json"}, {"zstd", ""}} {
		if _, err := decode([]byte("{}\n"), h[0], h[1]); err == nil {
			t.Errorf("%q is taken", h)
		}
	}
}

// A run cut between its frames is a shorter run; cut anywhere else it is an error, after the whole frames.
func TestDecodeTruncatedAtEachByte(t *testing.T) {
	for _, codec := range []string{"zstd", "s2", "lz4", "gzip"} { // of none, every cut between events is a whole payload
		first := frame(t, codec, wire.Prefixed, 1, "one", "two", "three")
		run := append(bytes.Clone(first), frame(t, codec, wire.Prefixed, 4, "four", "five")...)
		for n := 1; n < len(run); n++ {
			got, err := decode(run[:n], codec, wire.TypePrefixed)
			whole := 0
			if n == len(first) || n > len(first) && codec != "gzip" { // a run of gzip is one frame to a reader
				whole = 3
			}
			if (err == nil) != (n == len(first)) || len(got) != whole {
				t.Errorf("%s: %d of %d bytes: %d events, %v", codec, n, len(run), len(got), err)
			}
		}
	}
}

// Whatever bit flips on the way to a reader, no event comes out other than it went in.
func TestDecodeEachBitFlipped(t *testing.T) {
	run := frame(t, "zstd", wire.NDJSON, 1, `{"event":"one"}`, `{"event":"two"}`, `{"event":"three"}`)
	want, err := decode(run, "zstd", wire.TypeNDJSON)
	if err != nil {
		t.Fatal(err)
	}
	plain := 0
	for bit := range 8 * len(run) {
		run[bit/8] ^= 1 << (bit % 8)
		got, err := decode(run, "zstd", wire.TypeNDJSON)
		run[bit/8] ^= 1 << (bit % 8)
		switch {
		case err != nil:
		case strings.Contains(got[0], "web/3/gw"): // a bit that means nothing
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("bit %d: other events: %q", bit, got)
			}
		default:
			plain++ // the block's own mark is hit: a frame of somebody else, with the right data
			for i := range got {
				if !strings.HasSuffix(want[i], got[i][strings.Index(got[i], " data "):]) {
					t.Errorf("bit %d: other data: %q", bit, got[i])
				}
			}
		}
	}
	t.Logf("%d bits of %d make it a frame without metadata", plain, 8*len(run))
}

func TestDecodeChecksMetadataAgainstData(t *testing.T) {
	c, _ := compress.ByName("zstd")
	bomb := c.Append(nil, bytes.Repeat([]byte("\n"), 1<<16))
	for name, m := range map[string]wire.Meta{
		"fewer events than lines": {RawLen: 1 << 16, EventRoute: []uint32{0}, Routes: []wire.Route{{}}},
		"data longer than said":   {RawLen: 10},
		"data longer than ever":   {RawLen: 1 << 62},
	} {
		m.DataLen = uint64(len(bomb))
		run := wire.AppendFrame(nil, "zstd", wire.AppendMeta(nil, &m, nil), bomb)
		if got, err := decode(run, "zstd", wire.TypeNDJSON); err == nil || len(got) > 0 {
			t.Errorf("%s: %d events, %v", name, len(got), err)
		}
	}
}

func TestDecodeStopsWhenYieldDoes(t *testing.T) {
	run := frame(t, "zstd", wire.NDJSON, 1, "a", "b", "c")
	stop, calls := errors.New("enough"), 0
	err := Decode(run, "zstd", wire.TypeNDJSON, func(Event) error {
		if calls++; calls == 2 {
			return stop
		}
		return nil
	})
	if err != stop || calls != 2 {
		t.Error(err, calls)
	}
}

// K16: keys come out byte for byte, whether they lie in the event, occur in it by chance or do not.
func TestK16KeysComeBack(t *testing.T) {
	keys := []string{"", "a", "\x00\xff", `\u0041`, strings.Repeat("k", 1024), "10.0.0.1", "\n", "ключ"}
	c, _ := compress.ByName("zstd")
	for _, framing := range []wire.Framing{wire.NDJSON, wire.Prefixed} {
		m := wire.Meta{Framing: framing}
		var raw []byte
		for i, key := range keys {
			raw = wire.AppendEvent(raw, []byte(`{"a":"`+strings.ReplaceAll(key, "\n", `\n`)+`"}`), framing)
			m.Routes = append(m.Routes, wire.Route{Key: []byte(key), HasKey: true, Slot: int32(i), Child: None})
			m.EventRoute = append(m.EventRoute, uint32(i))
		}
		data := c.Append(nil, raw)
		m.RawLen, m.DataLen = uint64(len(raw)), uint64(len(data))
		run := wire.AppendFrame(nil, "zstd", wire.AppendMeta(nil, &m, raw), data)
		n := 0
		err := Decode(run, "zstd", framing.ContentType(), func(e Event) error {
			if string(e.Key) != keys[n] || !e.HasKey {
				t.Errorf("key %q came back as %q, %t", keys[n], e.Key, e.HasKey)
			}
			n++
			return nil
		})
		if err != nil || n != len(keys) {
			t.Error(n, err)
		}
	}
}

// Any decompressor of the codec prints the events and nothing else, of one frame and of a run.
func TestStandardTools(t *testing.T) {
	lines := make([]string, 3000)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"n":%d,"path":"/some/path/%d"}`, i, i%7)
	}
	text := strings.Join(lines, "\n") + "\n"
	for _, codec := range []string{"zstd", "lz4", "gzip", "s2"} {
		t.Run(codec, func(t *testing.T) {
			one := frame(t, codec, wire.NDJSON, 1, lines...)
			run := append(append(bytes.Clone(one), frame(t, codec, wire.NDJSON, 3001, "x")...), one...)
			if got := standard(t, codec, one); got != text {
				t.Errorf("a frame: %d bytes instead of %d", len(got), len(text))
			}
			if got := standard(t, codec, run); got != text+"x\n"+text {
				t.Errorf("a run: %d bytes", len(got))
			}
		})
	}
}

// standard decompresses with the codec's own tool; s2 has none but its library.
func standard(t *testing.T, codec string, payload []byte) string {
	t.Helper()
	if codec != "s2" {
		return tool(t, payload, codec, "-dc")
	}
	text, err := io.ReadAll(s2.NewReader(bytes.NewReader(payload)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tool runs a program on input and returns its output.
func tool(t *testing.T, input []byte, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("the tool %s is not installed", name)
	}
	cmd := exec.Command(path, args...)
	var out, complaints bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, complaints.String())
	}
	return out.String()
}

func FuzzDecode(f *testing.F) {
	encodings := []string{"zstd", "s2", "lz4", "gzip", ""}
	for i, codec := range []string{"zstd", "s2", "lz4", "gzip", "none"} {
		run := frame(f, codec, wire.NDJSON, 1, "one", "two", "three")
		f.Add(append(run, run...), byte(i))
	}
	f.Fuzz(func(t *testing.T, payload []byte, which byte) {
		if len(payload) > 1<<16 {
			return
		}
		encoding, contentType := encodings[int(which)%len(encodings)], framings[which>>7].ContentType()
		first, err := decode(payload, encoding, contentType)
		again, errAgain := decode(payload, encoding, contentType) // with the memory of the first
		if fmt.Sprint(first, err) != fmt.Sprint(again, errAgain) {
			t.Fatalf("%q, %v\nand the second time %q, %v", first, err, again, errAgain)
		}
	})
}

var framings = []wire.Framing{wire.NDJSON, wire.Prefixed}

// many returns a frame of so many access-log lines.
func many(t testing.TB, n int) []byte {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"time":"2026-01-02T03:04:05Z","remote_ip":"10.0.%d.%d","path":"/some/path/%d","agent":"curl/8.5.0"}`, i%3, i%200, i%7)
	}
	return frame(t, "zstd", wire.NDJSON, 1, lines...)
}

func TestDecodeAllocatesNothingPerEvent(t *testing.T) {
	run := many(t, 2000)
	n := testing.AllocsPerRun(20, func() { _ = Decode(run, "zstd", wire.TypeNDJSON, func(Event) error { return nil }) })
	if n > 100 { // what an empty pool costs
		t.Errorf("%v allocations for 2,000 events", n)
	}
}

func BenchmarkDecode(b *testing.B) {
	run := many(b, 2000)
	b.ReportAllocs()
	for b.Loop() {
		if err := Decode(run, "zstd", wire.TypeNDJSON, func(Event) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2000, "ns/event")
}
