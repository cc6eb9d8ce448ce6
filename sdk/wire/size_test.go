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

const (
	slots       = 1024
	frameBytes  = 512 << 10
	frameEvents = 10_000
)

// lane fills frames as a gateway does: a dictionary of routes in order of first use, one epoch a slot.
type lane struct {
	m      Meta
	raw    []byte
	routes map[string]uint32
	epochs map[int32]bool
	block  []byte

	frames, events, bytes int // sealed so far
}

func (l *lane) add(key, data []byte, slot int32) {
	route, ok := l.routes[string(key)]
	if !ok {
		route = uint32(len(l.m.Routes))
		l.routes[string(key)] = route
		l.m.Routes = append(l.m.Routes, Route{Key: key, HasKey: true, Slot: slot, Child: None})
	}
	if !l.epochs[slot] {
		l.epochs[slot] = true
		l.m.Epochs = append(l.m.Epochs, SlotEpoch{Slot: slot, Epoch: 7})
	}
	l.m.EventRoute = append(l.m.EventRoute, route)
	l.raw = AppendEvent(l.raw, data, NDJSON)
}

func (l *lane) full() bool { return len(l.raw) >= frameBytes || len(l.m.EventRoute) >= frameEvents }

func (l *lane) seal() {
	l.block = AppendMeta(l.block[:0], &l.m, l.raw)
	l.frames, l.events, l.bytes = l.frames+1, l.events+len(l.m.EventRoute), l.bytes+len(l.block)
	l.clear()
}

func (l *lane) clear() {
	l.m.Reset()
	l.m.Gateway, l.m.Stream, l.m.First, l.m.TableVersion = "0123456789abcdef", "web", 123456, 42
	l.m.RawLen, l.m.DataLen = frameBytes, frameBytes/9
	l.raw, l.routes, l.epochs = l.raw[:0], map[string]uint32{}, map[int32]bool{}
}

type line struct{ key, data []byte }

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
			`"agent":"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0 and some more words to make it long"}`,
			i/50%60, key, r.IntN(5000), r.IntN(300000), r.IntN(90))}
	}
	return lines
}

// send routes requests of 500 events over lanes and returns the bytes of metadata per event.
func send(lines []line, partitions int) float64 {
	lanes := make([]lane, partitions)
	for i := range lanes {
		lanes[i].clear()
	}
	r := rand.New(rand.NewPCG(5, 6))
	for first := 0; first < len(lines); first += 500 {
		request := Request{Time: 1767225600_000000000 + int64(first)*1_003_007, Source: []byte("10.0.0.7"), Chain: []byte("sha256:" + hexOf(r, 32)),
			ID: []byte(hexOf(r, 13)), TraceParent: []byte("00-" + hexOf(r, 16) + "-" + hexOf(r, 8) + "-01")}
		request.Chain = []byte("sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
		counts := make([]uint32, partitions)
		for _, e := range lines[first:min(first+500, len(lines))] {
			h := fnv.New64a()
			h.Write(e.key)
			slot := int32(h.Sum64() >> 54)
			at := int(slot) * 31 % partitions
			lanes[at].add(e.key, e.data, slot)
			counts[at]++
		}
		for i := range lanes {
			if counts[i] == 0 {
				continue
			}
			request.Count = counts[i]
			lanes[i].m.Requests = append(lanes[i].m.Requests, request)
			if lanes[i].full() {
				lanes[i].seal()
			}
		}
	}
	var events, bytes, frames int
	for i := range lanes {
		if len(lanes[i].m.EventRoute) > 0 {
			lanes[i].seal()
		}
		frames += lanes[i].frames
		events += lanes[i].events
		bytes += lanes[i].bytes
	}
	fmt.Println(partitions, frames, events, bytes)
	return float64(bytes) / float64(events)
}

func hexOf(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return hex.EncodeToString(b)
}

func TestMetaSize(t *testing.T) {
	for _, partitions := range []int{1, 4, 16} {
		t.Log(partitions, send(madeUp(100000), partitions))
		t.Log(partitions, send(sample(t), partitions))
	}
}

func sample(t *testing.T) []line {
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "data", "access-log.ndjson"))
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	var lines []line
	for s := bufio.NewScanner(f); s.Scan(); {
		data := bytes.Clone(s.Bytes())
		_, key, _ := bytes.Cut(data, []byte(`"remote_ip":"`))
		key, _, _ = bytes.Cut(key, []byte(`"`))
		lines = append(lines, line{key, data})
	}
	return lines
}
