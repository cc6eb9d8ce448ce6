package wire

import "testing"

// filled returns the metadata and raw events of one full frame.
func filled() (*Meta, []byte) {
	l := newLane()
	lines := madeUp(2000)
	for i, e := range lines {
		l.add(e)
		if i%500 == 499 {
			l.m.Requests = append(l.m.Requests, Request{Count: 500, Time: int64(i), ID: []byte{byte(i >> 8)}})
		}
	}
	return &l.m, l.raw
}

func TestNothingAllocatesPerEvent(t *testing.T) {
	m, raw := filled()
	block := AppendMeta(nil, m, raw)
	data := make([]byte, m.DataLen)
	frame := AppendFrame(nil, codecZstd, block, data)
	var parsed Meta
	for name, f := range map[string]func(){
		"AppendMeta":  func() { block = AppendMeta(block[:0], m, raw) },
		"AppendFrame": func() { frame = AppendFrame(frame[:0], codecZstd, block, data) },
		"SplitFrame":  func() { _, _, _, _ = SplitFrame(frame, codecZstd) },
		"ParseMeta":   func() { _ = ParseMeta(block, &parsed); _ = parsed.ResolveKeys(raw) },
		"NextEvent": func() {
			for rest := raw; len(rest) > 0; {
				_, rest, _ = NextEvent(rest, NDJSON)
			}
		},
	} {
		if n := testing.AllocsPerRun(20, f); n != 0 {
			t.Errorf("%s: %v allocations a frame", name, n)
		}
	}
}

func perEvent(b *testing.B, events int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
}

func BenchmarkAppendMeta(b *testing.B) {
	m, raw := filled()
	var block []byte
	b.ReportAllocs()
	for b.Loop() {
		block = AppendMeta(block[:0], m, raw)
	}
	perEvent(b, len(m.EventRoute))
}

func BenchmarkParseMeta(b *testing.B) {
	m, raw := filled()
	block := AppendMeta(nil, m, raw)
	var parsed Meta
	b.ReportAllocs()
	for b.Loop() {
		if err := ParseMeta(block, &parsed); err != nil {
			b.Fatal(err)
		}
		if err := parsed.ResolveKeys(raw); err != nil {
			b.Fatal(err)
		}
	}
	perEvent(b, len(m.EventRoute))
}

func BenchmarkNextEvent(b *testing.B) {
	m, raw := filled()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		for rest := raw; len(rest) > 0; {
			_, rest, _ = NextEvent(rest, NDJSON)
		}
	}
	perEvent(b, len(m.EventRoute))
}
