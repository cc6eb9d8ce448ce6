package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	brotli "github.com/molecule-man/go-brrr"

	"github.com/headgate-io/headgate/event"
)

// coded returns what a writer makes of texts, one complete stream for each, one behind the other.
func coded(open func(io.Writer) io.WriteCloser, texts ...string) string {
	var b bytes.Buffer
	for _, text := range texts {
		w := open(&b)
		io.WriteString(w, text)
		if err := w.Close(); err != nil {
			panic(err)
		}
	}
	return b.String()
}

func openGzip(w io.Writer) io.WriteCloser   { return gzip.NewWriter(w) }
func openZlib(w io.Writer) io.WriteCloser   { return zlib.NewWriter(w) }
func openFramed(w io.Writer) io.WriteCloser { return snappy.NewBufferedWriter(w) }

func openDeflate(w io.Writer) io.WriteCloser {
	z, err := flate.NewWriter(w, flate.DefaultCompression)
	if err != nil {
		panic(err)
	}
	return z
}

func openBrotli(w io.Writer) io.WriteCloser {
	z, err := brotli.NewWriter(w, 3)
	if err != nil {
		panic(err)
	}
	return z
}

func openZstd(w io.Writer) io.WriteCloser {
	z, err := zstd.NewWriter(w)
	if err != nil {
		panic(err)
	}
	return z
}

func gzipped(texts ...string) string { return coded(openGzip, texts...) }
func zstded(texts ...string) string  { return coded(openZstd, texts...) }
func zlibbed(text string) string     { return coded(openZlib, text) }
func deflated(text string) string    { return coded(openDeflate, text) }
func brotlied(text string) string    { return coded(openBrotli, text) }
func framed(texts ...string) string  { return coded(openFramed, texts...) }
func snapped(text string) string     { return string(snappy.Encode(nil, []byte(text))) }

func TestC06C08C10Codings(t *testing.T) {
	plain := strings.Repeat("{\"a\":1}\n", 1000)
	for _, c := range []struct {
		name, coding, body string
		status             int
		code               event.Code
		events             int
	}{
		{"gzip", "gzip", gzipped(plain), 200, "", 1000},
		{"deflate", "deflate", zlibbed(plain), 200, "", 1000},
		{"deflate without zlib", "Deflate", deflated(plain), 200, "", 1000},
		{"zstd", "ZSTD", zstded(plain), 200, "", 1000},
		{"br", "br", brotlied(plain), 200, "", 1000},
		{"snappy block", "snappy", snapped(plain), 200, "", 1000},
		{"snappy framed", "snappy", framed(plain), 200, "", 1000},
		{"identity", "identity", plain, 200, "", 1000},
		{"empty members of the list", ", gzip,,identity ,", gzipped(plain), 200, "", 1000},
		{"C08a gzip, then zstd", "gzip, zstd", zstded(gzipped(plain)), 200, "", 1000},
		{"C08a br, then snappy", "br,snappy", framed(brotlied(plain)), 200, "", 1000},
		{"C08a snappy, then deflate", "snappy, deflate", zlibbed(snapped(plain)), 200, "", 1000},
		{"C08a the other order", "gzip, zstd", gzipped(zstded(plain)), 400, event.BadZstd, 0},
		{"C08c gzip of plain text", "gzip", plain, 400, event.BadGzip, 0},
		{"zstd of plain text", "zstd", plain, 400, event.BadZstd, 0},
		{"deflate of plain text", "deflate", plain, 400, event.BadDeflate, 0},
		{"br of plain text", "br", plain, 400, event.BadBr, 0},
		{"snappy of plain text", "snappy", plain, 400, event.BadSnappy, 0},
		{"C10a two gzip members", "x-gzip", gzipped(plain, plain), 200, "", 2000},
		{"C10b a member and something else", "gzip", gzipped(plain) + "{\"a\":1}\n", 400, event.BadGzip, 0},
		{"two zstd frames", "zstd", zstded(plain, plain), 200, "", 2000},
		{"two snappy streams", "snappy", framed(plain, plain), 200, "", 2000},
		{"two deflate streams", "deflate", zlibbed(plain) + zlibbed(plain), 400, event.BadDeflate, 0},
		{"two bare deflate streams", "deflate", deflated(plain) + deflated(plain), 400, event.BadDeflate, 0},
		{"two br streams", "br", brotlied(plain) + brotlied(plain), 400, event.BadBr, 0},
		{"two snappy blocks", "snappy", snapped(plain) + snapped(plain), 400, event.BadSnappy, 0},
		{"a zstd frame and something else", "zstd", zstded(plain) + "{\"a\":1}\n", 400, event.BadZstd, 0},
		{"a frame of S2", "snappy", "\xff\x06\x00\x00S2sTwO" + framed(plain)[10:], 400, event.BadSnappy, 0},
		{"zlib with a dictionary", "deflate", "\x78\xbb\x01\x02\x03\x04", 400, event.BadDeflate, 0},
		{"damaged zlib", "deflate", zlibbed(plain)[:len(zlibbed(plain))-1] + "!", 400, event.BadDeflate, 0},
		{"gzip of nothing", "gzip", gzipped(""), 200, "", 0},
		{"br of nothing", "br", brotlied(""), 200, "", 0},
		{"snappy of nothing", "snappy", snapped(""), 200, "", 0},
		{"snappy framing of nothing", "snappy", framed(plain)[:10], 200, "", 0},
		{"C06 a window of 128 MiB", "zstd", "\x28\xb5\x2f\xfd\x00\x88\x01\x00\x00", 400, event.ZstdWindow, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := serve(t, Config{}, &fakeStream{})
			g.post(c.body, ndjson, "Content-Encoding: "+c.coding).want(t, c.status, c.code)
			if got := g.data(); len(got) != c.events {
				t.Errorf("%d events, want %d", len(got), c.events)
			}
		})
	}
}

func TestC08UnknownCodingIsNamed(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	r := g.post("1\n", ndjson, "Content-Encoding: gzip, Compress").want(t, 415, event.UnsupportedCoding)
	if accept := r.Header.Get("Accept-Encoding"); accept != acceptedCodings || !strings.Contains(r.doc.Detail, `"Compress"`) {
		t.Errorf("Accept-Encoding %q, %s", accept, r.body)
	}
}

// samples are bodies in every coding; cut says that no proper part of one is a body as well.
func samples(text string) map[string]struct {
	coding coding
	body   string
	cut    bool
} {
	return map[string]struct {
		coding coding
		body   string
		cut    bool
	}{
		"gzip": {gzipCoding, gzipped(text), true}, "zstd": {zstdCoding, zstded(text), true}, "br": {brotliCoding, brotlied(text), true},
		"zlib": {deflateCoding, zlibbed(text), true}, "deflate": {deflateCoding, deflated(text), true},
		"snappy block": {snappyCoding, snapped(text), true}, "snappy framed": {snappyCoding, framed(text), false},
	}
}

// inflated returns what the coding makes of src.
func (c coding) inflated(src string, limit int64) (string, error) {
	b := &buffer{account: &account{budget: unlimited()}}
	if err := b.take(100); err != nil {
		return "", err
	}
	defer b.close()
	err := c.inflate(b, []byte(src), limit)
	return string(b.bytes()), err
}

// Every cut of a coded body must be refused, whatever has been inflated before the cut. The framing format of snappy has
// no end, so that a cut between two chunks does not show: then the lines before it are there, whole.
func TestCodedBodiesCutAtEveryByte(t *testing.T) {
	for name, c := range samples("{\"a\":1}\n{\"b\":2}\n") {
		for n := range len(c.body) {
			got, err := c.coding.inflated(c.body[:n], 1000)
			if err == nil && (c.cut || n != len(framedSnappy) || got != "") {
				t.Errorf("%s cut after %d of %d bytes was taken", name, n, len(c.body))
			}
		}
	}
}

// Bodies on both sides of the size up to which a body is decoded once, and of its limit.
func TestInflatedSizes(t *testing.T) {
	noise := make([]byte, atOnce+1)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = "0123456789abcdef"[random.Uint32()&15]
	}
	for _, n := range []int{1, 65537, atOnce, atOnce + 1} {
		text := string(noise[:n])
		for name, c := range samples(text) {
			for _, room := range []int64{0, 1 << 30} {
				if got, err := c.coding.inflated(c.body, int64(n)+room); err != nil || got != text {
					t.Errorf("%s of %d bytes with %d to spare: %d bytes, %v", name, n, room, len(got), err)
				}
			}
			if _, err := c.coding.inflated(c.body, int64(n)-1); n > 0 && err != errOverLimit {
				t.Errorf("%s of %d bytes and one too many: %v", name, n, err)
			}
		}
	}
}

// zeros are n bytes of zero in the coding, or in two.
func zeros(n int64, open ...func(io.Writer) io.WriteCloser) string {
	var b bytes.Buffer
	var all []io.WriteCloser
	w := io.Writer(&b)
	for _, f := range open {
		all = append(all, f(w))
		w = all[len(all)-1]
	}
	io.CopyN(w, zeroReader{}, n)
	for i := range all {
		all[len(all)-1-i].Close()
	}
	return b.String()
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// bombs are 200 MiB of zeros in every coding.
func bombs() map[string]string {
	const size = 200 << 20
	return map[string]string{
		"gzip": zeros(size, openGzip), "zstd": zeros(size, openZstd), "br": zeros(size, openBrotli), "deflate": zeros(size, openZlib),
		"Deflate": zeros(size, openDeflate), "snappy": zeros(size, openFramed), "Snappy": snapped(strings.Repeat("\x00", size)),
		"gzip, zstd": zeros(size, openZstd, openGzip), "snappy, br": zeros(size, openBrotli, openFramed),
	}
}

// C01: a bomb is refused, and costs less than its limit and 1 MiB: all that is allocated counts, whether it is free again
// or not, and no memory of earlier requests is there to be used.
func TestC01BombsCostLessThanTheLimit(t *testing.T) {
	const limit = 10 << 20
	limits := Limits{Inflated: limit, Ratio: 1 << 30}
	for coding, body := range bombs() {
		for _, text := range []string{request11(events, body, rawType, "Content-Encoding: "+coding),
			chunked(events, rawType, "Content-Encoding: "+coding) + chunks(body, 1<<20) + "0\r\n\r\n"} {
			g := serve(t, Config{}, &fakeStream{settings: Settings{Limits: limits}})
			c, raw := g.dial(), []byte(text)
			forgetPools()
			before := allocated()
			if _, err := c.Conn.Write(raw); err != nil {
				t.Fatal(err)
			}
			r := c.answer().want(t, 413, event.InflatedTooLarge)
			cost := allocated() - before
			cost -= held(len(body))
			if r.doc.Scope != "inflated" || r.doc.Limit != limit {
				t.Errorf("%s: %s", coding, r.body)
			}
			t.Logf("%-10s %9d bytes: %5.1f MiB beside the body", coding, len(body), float64(cost)/(1<<20))
			if cost > limit+1<<20 {
				t.Errorf("%s: %d bytes were allocated", coding, cost)
			}
			g.nothing()
		}
	}
}

// held is how much is allocated at most to receive n bytes.
func held(n int) (sum int64) {
	b := &buffer{account: &account{budget: unlimited()}}
	forgetPools()
	before := allocated()
	if err := errors.Join(b.open(-1), b.fill(io.LimitReader(zeroReader{}, int64(n)), 16<<20)); err != nil {
		panic(err)
	}
	return allocated() - before
}

func allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
}

// forgetPools empties what is kept for reuse: what is in a pool survives one collection.
func forgetPools() {
	debug.FreeOSMemory()
	runtime.GC()
}

// C04: a size that is only declared is refused when it is too large, and never allocated.
func TestC04DeclaredSizes(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	declare := func(n uint64) string {
		return string(binary.AppendUvarint(nil, n)) + strings.Repeat("\x00", 20-len(binary.AppendUvarint(nil, n)))
	}
	frame := func(n uint32) string { // a single segment that says it has n bytes, with one block of one byte
		return "\x28\xb5\x2f\xfd\xa0" + string(binary.LittleEndian.AppendUint32(nil, n)) + "\x09\x00\x00x"
	}
	for _, c := range []struct {
		name, coding, body string
		status             int
		code               event.Code
	}{
		{"1 GiB", "snappy", declare(1 << 30), 413, event.InflatedTooLarge},
		{"4 GiB less one", "snappy", declare(1<<32 - 1), 413, event.InflatedTooLarge},
		{"more than there is", "snappy", declare(1 << 40), 400, event.BadSnappy},
		{"within the limit", "snappy", declare(1 << 20), 400, event.BadSnappy},
		{"zstd, 4 GiB less one", "zstd", frame(1<<32 - 1), 400, event.ZstdWindow},
		{"zstd, 8 MiB", "zstd", frame(8 << 20), 400, event.BadZstd},
	} {
		forgetPools()
		before := allocated()
		g.post(c.body, rawType, "Content-Encoding: "+c.coding).want(t, c.status, c.code)
		if cost := allocated() - before; cost > 1<<20 && c.coding == "snappy" || cost > maxWindow+1<<20 {
			t.Errorf("%s: %d bytes were allocated", c.name, cost)
		}
	}
	g.nothing()
}

func TestRatioLimit(t *testing.T) {
	for coding, body := range map[string]string{"gzip": zeros(40<<20, openGzip), "zstd": zeros(40<<20, openZstd), "gzip, zstd": zeros(40<<20, openZstd, openGzip)} {
		g := serve(t, Config{}, &fakeStream{})
		r := g.post(body, rawType, "Content-Encoding: "+coding).want(t, 413, event.InflatedTooLarge)
		if want := max(1<<20, 200*int64(len(body))); r.doc.Limit != want || !strings.Contains(r.doc.Detail, "200 times") {
			t.Errorf("%s: %s, want limit %d", coding, r.body, want)
		}
		g.nothing()
	}
}

// What is still coded when the outer coding is undone may be as large as a body.
func TestInnerCodedBodyIsLimited(t *testing.T) {
	s := &fakeStream{settings: Settings{Limits: Limits{Body: 1 << 20, Event: 64 << 20, Ratio: 1 << 20}}}
	g := serve(t, Config{}, s)
	inner := zeros(3<<20, openFramed) // 150 KiB
	g.post(zstded(inner), rawType, "Content-Encoding: snappy, zstd").want(t, 200, "")
	if got := g.data(); len(got) != 1 || len(got[0]) != 3<<20 {
		t.Errorf("%d events", len(got))
	}
	stored := gzipped(strings.Repeat("x", 100<<10)) + coded(func(w io.Writer) io.WriteCloser { // 2 MiB that gzip has not compressed
		z, err := gzip.NewWriterLevel(w, gzip.NoCompression)
		if err != nil {
			panic(err)
		}
		return z
	}, strings.Repeat("x", 2<<20))
	if r := g.post(zstded(stored), rawType, "Content-Encoding: gzip, zstd"); r.StatusCode != 413 || r.doc.Limit != 1<<20 && !strings.Contains(r.doc.Detail, "times") {
		t.Errorf("got %d %s", r.StatusCode, r.body)
	}
	g.nothing()
}

// A body that is wrong about its size is inflated all the same, or refused for what it is.
func TestDeclaredSizesThatAreBelieved(t *testing.T) {
	big, small := strings.Repeat("0123456789abcdef0123456789abcdeX", 3<<20/32), "0123456789"
	random := rand.New(rand.NewPCG(5, 6))
	noise := make([]byte, 2<<20)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	noisy := big + string(noise)
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := string(encoder.EncodeAll([]byte(noisy), nil))
	member, most := gzipped(noisy), int64(64<<20)
	for body, want := range map[string]int64{member: 5 << 20, whole: 5 << 20, gzipped(big): 0, string(encoder.EncodeAll([]byte(big), nil)): 0, zstded(noisy): 0} {
		c := gzipCoding
		if body[0] == '\x28' {
			c = zstdCoding
		}
		if got := c.likely([]byte(body)); got != want {
			t.Errorf("%d bytes are taken to be %d, want %d", len(body), got, want)
		}
	}
	for name, c := range map[string]struct {
		coding     coding
		body, want string
	}{
		"gzip":                      {gzipCoding, member, noisy},
		"gzip, a small one at last": {gzipCoding, member + gzipped(small), noisy + small},
		"gzip, a large one at last": {gzipCoding, gzipped(small) + member, small + noisy},
		"gzip, two large ones":      {gzipCoding, member + member, noisy + noisy},
		"gzip of much":              {gzipCoding, gzipped(big), big},
		"zstd":                      {zstdCoding, whole, noisy},
		"zstd, a small one first":   {zstdCoding, zstded(small) + whole, small + noisy},
		"zstd, two large ones":      {zstdCoding, whole + whole, noisy + noisy},
		"zstd that does not tell":   {zstdCoding, zstded(noisy), noisy},
	} {
		if got, err := c.coding.inflated(c.body, most); err != nil || got != c.want {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if _, err := c.coding.inflated(c.body, int64(len(c.want)-1)); err != errOverLimit {
			t.Errorf("%s, one byte too many: %v", name, err)
		}
	}
	liar := member[:len(member)-4] + "\x00\x00\x40\x00" // 4 MiB
	var problem *event.Problem
	if _, err := gzipCoding.inflated(liar, most); !errors.As(err, &problem) || problem.Code != event.BadGzip {
		t.Errorf("a wrong size: %v", err)
	}
}

// Frames that hold nothing cost time and give nothing.
func TestHollowFrames(t *testing.T) {
	for name, frame := range map[string]string{"empty": "\x28\xb5\x2f\xfd\x00\x00\x01\x00\x00", "skippable": "\x50\x2a\x4d\x18\x00\x00\x00\x00"} {
		few, many := strings.Repeat(frame, hollow/2/len(frame)), strings.Repeat(frame, 2*hollow/len(frame))
		if got, err := zstdCoding.inflated(zstded("a")+few+zstded("b"), 100); err != nil || got != "ab" {
			t.Errorf("%s: few of them: %q, %v", name, got, err)
		}
		if _, err := zstdCoding.inflated(zstded("a")+many, 100); err == nil || !strings.Contains(err.Error(), errHollow.Error()) {
			t.Errorf("%s: many of them: %v", name, err)
		}
	}
}

// FuzzCodings: whatever a body is, undoing its coding does not panic, ends within its limit and gives all memory back.
func FuzzCodings(f *testing.F) {
	lines := "{\"a\":1}\n{\"b\":2}\n"
	for _, c := range samples(lines) {
		f.Add(uint8(c.coding), []byte(c.body))
		f.Add(uint8(c.coding), []byte(c.body[:len(c.body)/2]))
	}
	f.Add(uint8(gzipCoding), []byte(gzipped(lines, lines)))
	f.Add(uint8(zstdCoding), []byte("\x50\x2a\x4d\x18\x03\x00\x00\x00abc"+zstded(lines, lines)))
	f.Add(uint8(zstdCoding), []byte(strings.Repeat("\x50\x2a\x4d\x18\x00\x00\x00\x00", hollow/7)))
	f.Add(uint8(deflateCoding), []byte("\x78\xbb\x01\x02\x03\x04"))
	f.Add(uint8(snappyCoding), []byte(string(framedSnappy)+"\xfe\x03\x00\x00abc\x80\x01\x00\x00d"))
	f.Add(uint8(snappyCoding), []byte("\x80\x80\x80\x80\x04"))
	f.Add(uint8(snappyCoding), s2.Encode(nil, []byte(strings.Repeat(lines, 100))))
	f.Add(uint8(brotliCoding), []byte("\x91\x01\x00")) // large window
	f.Add(uint8(zstdCoding), []byte("\x28\xb5\x2f\xfd\x00\x88\x01\x00\x00"))
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		const limit = 2 << 20
		a := &account{budget: unlimited()}
		b := &buffer{account: a}
		if err := b.take(16); err != nil {
			t.Fatal(err)
		}
		err := coding(which%uint8(allCodings)).inflate(b, body, limit)
		if b.slab != nil && len(b.bytes()) > limit {
			t.Errorf("%d bytes", len(b.bytes()))
		}
		var problem *event.Problem
		if err != nil && err != errOverLimit && !errors.As(err, &problem) {
			t.Errorf("error %v", err)
		}
		b.close()
		if a.held != 0 {
			t.Errorf("%d bytes are still reserved", a.held)
		}
	})
}

func BenchmarkBombs(b *testing.B) {
	for coding, body := range bombs() {
		var all codings
		if no := all.add([]byte(coding)); no != nil || all.n > 1 {
			continue
		}
		for _, limit := range []int64{10 << 20, 64 << 20} {
			b.Run(fmt.Sprintf("%s/%dMiB", coding, limit>>20), func(b *testing.B) {
				for b.Loop() {
					if _, err := all.applied[0].inflated(body, limit); err != errOverLimit {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
