package wire

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// lane fills frames of 512 KiB or 10,000 events as a gateway does: a dictionary of routes in order of first
// use, one epoch a slot.
type lane struct {
	m      Meta
	raw    []byte
	routes map[string]uint32
	epochs map[int32]bool
	block  []byte

	events, bytes int // sealed so far
}

func newLane() *lane {
	l := &lane{routes: map[string]uint32{}, epochs: map[int32]bool{}}
	l.open()
	return l
}

func (l *lane) open() {
	l.m.Reset()
	l.m.Gateway, l.m.Stream, l.m.First, l.m.TableVersion = "0123456789abcdef", "web", 123456789, 42
	l.m.RawLen, l.m.DataLen = 512<<10, 60_000
	l.raw = l.raw[:0]
	clear(l.routes)
	clear(l.epochs)
}

func (l *lane) add(e line) {
	route, ok := l.routes[string(e.key)]
	if !ok {
		route = uint32(len(l.m.Routes))
		l.routes[string(e.key)] = route
		l.m.Routes = append(l.m.Routes, Route{Key: e.key, HasKey: true, Slot: e.slot, Child: None})
	}
	if !l.epochs[e.slot] {
		l.epochs[e.slot] = true
		l.m.Epochs = append(l.m.Epochs, SlotEpoch{Slot: e.slot, Epoch: 7})
	}
	l.m.EventRoute = append(l.m.EventRoute, route)
	l.raw = AppendEvent(l.raw, e.data, NDJSON)
}

// end ends a request of which the lane got count events.
func (l *lane) end(r Request, count int) {
	if count == 0 {
		return
	}
	r.Count = uint32(count)
	l.m.Requests = append(l.m.Requests, r)
	if len(l.raw) >= 512<<10 || len(l.m.EventRoute) >= 10_000 {
		l.seal()
	}
}

func (l *lane) seal() {
	l.block = AppendMeta(l.block[:0], &l.m, l.raw)
	l.events, l.bytes = l.events+len(l.m.EventRoute), l.bytes+len(l.block)
	l.open()
}

type line struct {
	key, data []byte
	slot      int32
}

// slotOf is one of 1,024 slots.
func slotOf(key []byte) int32 {
	h := fnv.New64a()
	_, _ = h.Write(key)
	return int32(h.Sum64() * 0x9E3779B97F4A7C15 >> 54)
}

// madeUp returns lines like those of an access log: 1,753 addresses, the first ones with most of the traffic.
func madeUp(n int) []line {
	r := rand.New(rand.NewPCG(3, 4))
	zipf := rand.NewZipf(r, 1.1, 4, 1752)
	lines := make([]line, n)
	for i := range lines {
		client := zipf.Uint64() * 2654435761 % (1 << 24)
		key := fmt.Appendf(nil, "10.%d.%d.%d", client>>16, client>>8&255, client&255)
		lines[i] = line{key, fmt.Appendf(nil, `{"time":"2026-01-02T03:04:%02d.000Z","remote_ip":"%s","remote_user":"-",`+
			`"request":"GET /articles/%d/index.html HTTP/1.1","response":200,"bytes":%d,"referrer":"http://example.com/list/%d",`+
			`"agent":"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}`,
			i/50%60, key, r.IntN(5000), r.IntN(300000), r.IntN(90)), slotOf(key)}
	}
	return lines
}

// accessLog returns the lines of the big sample, where it is.
func accessLog(t *testing.T) []line {
	dir := os.Getenv("HEADGATE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	f, err := os.Open(filepath.Join(dir, "access-log.ndjson"))
	if err != nil {
		t.Skip("the big sample is not here: ", err)
	}
	defer f.Close()
	var lines []line
	for s := bufio.NewScanner(f); s.Scan(); {
		data := bytes.Clone(s.Bytes())
		_, key, _ := bytes.Cut(data, []byte(`"remote_ip":"`))
		key, _, _ = bytes.Cut(key, []byte(`"`))
		lines = append(lines, line{key, data, slotOf(key)})
	}
	return lines
}

// metaBytes sends lines in requests of 500 over lanes and returns the bytes of metadata per event.
func metaBytes(lines []line, partitions int) float64 {
	lanes := make([]*lane, partitions)
	for i := range lanes {
		lanes[i] = newLane()
	}
	r := rand.New(rand.NewPCG(5, 6))
	for first := 0; first < len(lines); first += 500 {
		counts := make([]int, partitions)
		for _, e := range lines[first:min(first+500, len(lines))] {
			at := int(e.slot) % partitions
			lanes[at].add(e)
			counts[at]++
		}
		request := Request{
			Time: 1767225600_000000000 + int64(first)*1_003_007, Source: []byte("10.0.0.7"), ID: []byte(hexOf(r, 13)),
			TraceParent: []byte("00-" + hexOf(r, 16) + "-" + hexOf(r, 8) + "-01"),
			Chain:       []byte("sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
		}
		for i, l := range lanes {
			l.end(request, counts[i])
		}
	}
	events, size := 0, 0
	for _, l := range lanes {
		l.seal()
		events, size = events+l.events, size+l.bytes
	}
	return float64(size) / float64(events)
}

func hexOf(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return hex.EncodeToString(b)
}

// What the metadata of events without ids may cost, with the requests they came in: 4 bytes an event.
func TestMetaSize(t *testing.T) {
	check := func(t *testing.T, lines []line) {
		for _, partitions := range []int{1, 4, 16} {
			size := metaBytes(lines, partitions)
			t.Logf("%d partitions: %.2f bytes of metadata an event", partitions, size)
			if size > 4 {
				t.Errorf("%d partitions: %.2f bytes of metadata an event", partitions, size)
			}
		}
	}
	t.Run("made up", func(t *testing.T) { check(t, madeUp(50_000)) })
	t.Run("access log", func(t *testing.T) { check(t, accessLog(t)) })
}
