package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"testing"
)

// full returns a Meta that uses every column, and the events it belongs to.
func full() (m *Meta, raw []byte) {
	events := []string{`{"ip":"10.0.0.1"}`, `{"ip":"10.0.0.2"}`, `{"ip":"10.0.0.1"}`, `{"n":"\u0041"}`, `{}`, `{"ip":"10.0.0.2"}`}
	for _, e := range events {
		raw = AppendEvent(raw, []byte(e), NDJSON)
	}
	return &Meta{
		Gateway: "0123456789abcdef", Stream: "web", Partition: 300, First: 1 << 40, TableVersion: 9,
		RawLen: uint64(len(raw)), DataLen: 77,
		Routes: []Route{
			{Key: []byte("10.0.0.1"), HasKey: true, Slot: 1000, Child: None},
			{Key: []byte("10.0.0.2"), HasKey: true, Slot: 4, Child: 16385},
			{Key: []byte("A"), HasKey: true, Slot: 0, Child: None},
			{Slot: None, Child: None},
			{Key: []byte{}, HasKey: true, Slot: math.MaxInt32, Child: None},
		},
		EventRoute: []uint32{0, 1, 0, 2, 3, 4},
		Epochs:     []SlotEpoch{{16385, math.MaxUint32}, {1000, 1}, {0, 3}, {math.MaxInt32, 0}},
		Requests: []Request{
			{Count: 2, Time: 1767225600_123456789, ID: []byte("01JZ"), Source: []byte("10.1.1.1"), Chain: []byte("sha256:00"),
				TraceParent: []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), TraceState: []byte("a=1,b=2")},
			{Count: 0, Time: math.MinInt64, ID: []byte("01JZ"), TraceParent: []byte("00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")},
			{Count: 4, Time: math.MaxInt64, Source: []byte("me"), ClientID: []byte("r-1"), Caller: []byte("t")},
		},
		IDs:   [][]byte{nil, []byte("a"), {}, nil, []byte("b"), nil},
		Times: []int64{0, 1767225600_000000000, 1767225600_250000000, math.MinInt64, 0, math.MaxInt64},
		Attrs: [][]Attr{nil, {{[]byte("type"), []byte("t")}, {[]byte("source"), []byte("/s")}}, nil,
			{{[]byte("type"), []byte("t")}, {[]byte("source"), []byte("/other")}, {[]byte("subject"), nil}}, {}, {{[]byte("type"), []byte("t")}}},
		After: []Predecessor{{Partition: 1, Gateway: "0123456789abcdef", Number: 5}, {Partition: 2, Gateway: "other", Number: math.MaxUint64}},
	}, raw
}

// show is what a Meta says, in one string.
func show(m *Meta) string {
	c := *m
	c.attrs, c.texts, c.Routes = nil, nil, nil
	s := fmt.Sprintf("%q", fmt.Sprintf("%+v", c))
	for _, r := range m.Routes {
		s += fmt.Sprintf(" %q %t %d %d", r.Key, r.HasKey, r.Slot, r.Child)
	}
	for _, id := range m.IDs {
		s += fmt.Sprint(" ", id == nil)
	}
	return s
}

func TestMetaComesBack(t *testing.T) {
	m, raw := full()
	block := AppendMeta([]byte("before"), m, raw)[len("before"):]
	got := &Meta{Gateway: "left over", Routes: make([]Route, 3), After: make([]Predecessor, 1), Framing: Prefixed}
	if err := ParseMeta(block, got); err != nil {
		t.Fatal(err)
	}
	if got.Routes[0].Key != nil || string(got.Routes[2].Key) != "A" {
		t.Errorf("keys before ResolveKeys: %v", got.Routes)
	}
	if err := got.ResolveKeys(raw); err != nil {
		t.Fatal(err)
	}
	if show(got) != show(m) {
		t.Errorf("got  %s\nwant %s", show(got), show(m))
	}
	if epoch, ok := got.Epoch(1000); epoch != 1 || !ok {
		t.Error("epoch of slot 1000:", epoch, ok)
	}
	if _, ok := got.Epoch(4); ok {
		t.Error("slot 4 has an epoch of its own")
	}
}

func TestEmptyMetaComesBack(t *testing.T) {
	var m, got Meta
	if err := ParseMeta(AppendMeta(nil, &m, nil), &got); err != nil || show(&got) != show(&m) {
		t.Error(err, show(&got))
	}
}

// Routes may come in any order; one that is first used out of order is literal.
func TestRoutesOutOfOrder(t *testing.T) {
	raw := []byte("kb\nka\nkb\nkc\n")
	m := &Meta{EventRoute: []uint32{1, 0, 1, 3}}
	for _, key := range []string{"ka", "kb", "kx", "kc"} {
		m.Routes = append(m.Routes, Route{Key: []byte(key), HasKey: true, Slot: None, Child: None})
	}
	var got Meta
	if err := ParseMeta(AppendMeta(nil, m, raw), &got); err != nil {
		t.Fatal(err)
	}
	if err := got.ResolveKeys(raw); err != nil || show(&got) != show(m) {
		t.Errorf("%v\ngot  %s\nwant %s", err, show(&got), show(m))
	}
}

// A block made with the wrong raw events is still right.
func TestKeysAreLiteralWithoutTheirEvents(t *testing.T) {
	m, _ := full()
	var got Meta
	if err := ParseMeta(AppendMeta(nil, m, nil), &got); err != nil || show(&got) != show(m) {
		t.Error(err)
	}
}

func TestParseMetaTruncatedAtEachByte(t *testing.T) {
	m, raw := full()
	block := AppendMeta(nil, m, raw)
	for n := range block {
		if err := ParseMeta(block[:n], m); err == nil {
			t.Errorf("%d of %d bytes are a block", n, len(block))
		}
	}
	if err := ParseMeta(append(block, 0), m); err == nil {
		t.Error("a block with a byte behind it is a block")
	}
}

func TestParseMetaEachBitFlipped(t *testing.T) {
	m, raw := full()
	block := AppendMeta(nil, m, raw)
	var got Meta
	for bit := range 8 * len(block) {
		block[bit/8] ^= 1 << (bit % 8)
		if err := ParseMeta(block, &got); err == nil {
			t.Errorf("bit %d: not noticed", bit)
		}
		block[bit/8] ^= 1 << (bit % 8)
	}
}

// place is the bytes of a frame column.
const place = "\x07\x01\x01\x00\x02\x02\x01g\x01s"

// columns makes a block from ids and their bytes, with a frame column in front and its checksum.
func columns(pairs ...any) []byte {
	return bare(append([]any{colFrame, place}, pairs...)...)
}

func bare(pairs ...any) []byte {
	block := []byte(magic)
	for i := 0; i < len(pairs); i += 2 {
		var start int
		block, start = openColumn(block, uint64(pairs[i].(int)))
		block = closeColumn(append(block, pairs[i+1].(string)...), start)
	}
	return seal(block)
}

func seal(block []byte) []byte {
	sum := crc32.Checksum(block, castagnoli)
	return binary.LittleEndian.AppendUint32(append(block, colSum, 4), sum)
}

func TestParseMetaSkipsUnknownColumns(t *testing.T) {
	var m Meta
	if err := ParseMeta(columns(20, "what", 63, ""), &m); err != nil || m.Partition != 7 {
		t.Error(err, m.Partition)
	}
}

func TestParseMetaRefuses(t *testing.T) {
	for name, block := range map[string][]byte{
		"other magic":                []byte("HGM2"),
		"no frame column":            bare(colKeys, "\x00"),
		"columns out of order":       columns(colKeys, "\x00", colEpochs, "\x01\x01"),
		"a column twice":             columns(colKeys, "\x00", colKeys, "\x00"),
		"framing 2":                  bare(colFrame, "\x07\x01\x01\x02\x02\x02\x01g\x01s"),
		"bytes behind a column":      bare(colFrame, "\x07\x01\x01\x00\x02\x02\x01g\x01s!"),
		"slot twice":                 columns(colEpochs, "\x01\x01\x00\x01"),
		"slot over 31 bits":          columns(colEpochs, "\x80\x80\x80\x80\x08\x01\x01\x01"),
		"epoch over 32 bits":         columns(colEpochs, "\x01\x80\x80\x80\x80\x10"),
		"key too long":               columns(colKeys, "\x05a"),
		"slot without route":         columns(colSlots, "\x00"),
		"slot of no epoch":           columns(colKeys, "\x00", colSlots, "\x01"),
		"no such route":              columns(colKeys, "\x00", colEventRoute, "\x02"),
		"more routes than keys":      columns(colKeys, "\x00", colEventRoute, "\x00\x00"),
		"requests off":               columns(colKeys, "\x00", colEventRoute, "\x00", colRequests, "\x02\x00\x00\x00\x00\x00"),
		"fewer ids than events":      columns(colKeys, "\x00", colEventRoute, "\x00\x01", colIDs, "\x00"),
		"more ids than events":       columns(colKeys, "\x00", colEventRoute, "\x00", colIDs, "\x00\x00"),
		"unit of 7 ns":               columns(colKeys, "\x00", colEventRoute, "\x00", colTimes, "\x07\x02"),
		"time over 64 bits":          columns(colKeys, "\x00", colEventRoute, "\x00", colTimes, "\x80\x94\xeb\xdc\x03\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
		"more attributes than bytes": columns(colKeys, "\x00", colEventRoute, "\x00", colAttrs, "\xff\xff\xff\xff\x0f\x00\x00"),
		"predecessor cut off":        columns(colAfter, "\x01\x01"),
	} {
		var m Meta
		if err := ParseMeta(block, &m); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestResolveKeysRefusesOtherEvents(t *testing.T) {
	m, raw := full()
	block := AppendMeta(nil, m, raw)
	var got Meta
	for n := range raw {
		if err := ParseMeta(block, &got); err != nil {
			t.Fatal(err)
		}
		err := got.ResolveKeys(raw[:n])
		if lastIntroduced := len(raw) - len(`{"ip":"10.0.0.2"}`) - 1; n < lastIntroduced && err == nil {
			t.Errorf("%d bytes of events are enough", n)
		}
	}
	if err := ParseMeta(columns(colKeys, "\x04\x00"), &got); err != nil {
		t.Fatal(err)
	}
	if err := got.ResolveKeys(raw); !errors.Is(err, ErrMalformed) {
		t.Error("a key in no event:", err)
	}
}

func TestAppendMetaPanicsOnWhatDoesNotFit(t *testing.T) {
	for name, spoil := range map[string]func(*Meta){
		"ids":      func(m *Meta) { m.IDs = m.IDs[1:] },
		"times":    func(m *Meta) { m.Times = m.Times[1:] },
		"attrs":    func(m *Meta) { m.Attrs = m.Attrs[1:] },
		"route":    func(m *Meta) { m.EventRoute[0] = 5 },
		"requests": func(m *Meta) { m.Requests[0].Count++ },
		"epochs":   func(m *Meta) { m.Epochs[0] = m.Epochs[1] },
		"no slot":  func(m *Meta) { m.Epochs[0].Slot = None },
	} {
		t.Run(name, func(t *testing.T) {
			m, raw := full()
			spoil(m)
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			AppendMeta(nil, m, raw)
		})
	}
}

func FuzzParseMeta(f *testing.F) {
	m, raw := full()
	block := AppendMeta(nil, m, raw)
	f.Add(block, raw)
	f.Add(block[:len(block)-6], raw)
	f.Add([]byte(magic+"\x03\x01\x00"), []byte("a\n"))
	f.Fuzz(func(t *testing.T, block, raw []byte) {
		checkParse(t, block, raw)
		checkParse(t, seal(block[:len(block):len(block)]), raw) // past the checksum
	})
}

// checkParse parses a block and, when it is one, writes it again: both must say the same.
func checkParse(t *testing.T, block, raw []byte) {
	var m, again Meta
	err := ParseMeta(block, &m)
	if n := len(block); len(m.Routes) > n || len(m.EventRoute) > n || len(m.Epochs) > n/2 || len(m.Requests) > n/6 ||
		len(m.IDs) > n || len(m.Times) > n || len(m.Attrs) > n || len(m.attrs) > n/2 || len(m.texts) > 3*n || len(m.After) > n/3 {
		t.Fatalf("a block of %d bytes fills too much memory", n)
	}
	if err != nil || m.ResolveKeys(raw) != nil {
		return
	}
	want := show(&m)
	if err := ParseMeta(AppendMeta(nil, &m, raw), &again); err != nil {
		t.Fatal(err)
	}
	if err := again.ResolveKeys(raw); err != nil {
		t.Fatal(err)
	}
	if got := show(&again); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// Keys whose place is known are written as those that are found are, without the events.
func TestKeysAtTheirPlaces(t *testing.T) {
	m, raw := filled()
	want := AppendMeta(nil, m, raw)
	next := 0
	for i, rest := 0, raw; len(rest) > 0; i++ {
		var data []byte
		data, rest, _ = NextEvent(rest, m.Framing)
		if int(m.EventRoute[i]) == next {
			m.Routes[next].KeyAt = uint32(bytes.Index(data, m.Routes[next].Key) + 1)
			next++
		}
	}
	if got := AppendMeta(nil, m, nil); !bytes.Equal(got, want) {
		t.Errorf("%d bytes with places, %d when keys are looked for", len(got), len(want))
	}
}
