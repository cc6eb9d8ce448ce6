package compress

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/headgate-io/headgate/internal/race"
)

// lines returns n bytes of made-up access-log lines.
func lines(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	agents := []string{"Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0", "curl/8.5.0", "Mozilla/5.0 (Macintosh) Safari/605.1.15"}
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `{"time":"2026-01-02T03:%02d:%02d.000Z","remote_ip":"10.0.%d.%d","request":"GET /static/page-%d.html HTTP/1.1",`+
			`"response":%d,"bytes":%d,"referrer":"http://example.com/%d/","agent":%q}`+"\n", i/1000%60, i/20%60, r.IntN(16), r.IntN(256),
			r.IntN(3000), 200+r.IntN(5), r.IntN(300000), r.IntN(200), agents[r.IntN(3)])
	}
	return b.Bytes()[:n]
}

func all(t testing.TB) []*Codec {
	var cs []*Codec
	for _, name := range []string{"zstd", "s2", "lz4", "gzip", "none"} {
		c, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		cs = append(cs, c)
	}
	return cs
}

func TestByName(t *testing.T) {
	for _, c := range all(t) {
		byEncoding, err := ByEncoding(c.ContentEncoding())
		if err != nil || byEncoding != c {
			t.Errorf("%s: %v", c.Name(), err)
		}
	}
	if c, err := ByEncoding("identity"); err != nil || c.Name() != "none" {
		t.Error("identity:", err)
	}
	for _, name := range []string{"", "br", "Zstd"} {
		if _, err := ByName(name); err == nil {
			t.Errorf("%q is a codec", name)
		}
	}
	if _, err := ByEncoding("none"); err == nil {
		t.Error("none is a content encoding")
	}
}

func TestFramesComeBack(t *testing.T) {
	noise := make([]byte, 100_000)
	r := rand.NewChaCha8([32]byte{})
	_, _ = r.Read(noise)
	for _, c := range all(t) {
		for _, src := range [][]byte{[]byte("x"), lines(1000), lines(512 << 10), lines(3 << 20), noise} {
			frame := c.Append([]byte("before"), src)
			got, err := c.AppendDecoded([]byte("kept"), frame[len("before"):], len(src))
			if err != nil || string(got) != "kept"+string(src) {
				t.Errorf("%s: %d bytes: got %d, %v", c.Name(), len(src), len(got), err)
			}
		}
	}
}

func TestFramesInARow(t *testing.T) {
	for _, c := range all(t) {
		a, b := lines(2000), lines(70_000)
		run := c.Append(c.Append(nil, a), b)
		if got, err := c.AppendDecoded(nil, run, 1<<20); err != nil || string(got) != string(a)+string(b) {
			t.Errorf("%s: %d bytes, %v", c.Name(), len(got), err)
		}
	}
}

// Skippable frames, which zstd and lz4 share, are passed over wherever they stand; s2 has a chunk for it.
func TestSkippableFrames(t *testing.T) {
	skippable := []byte("\x5d\x2a\x4d\x18\x03\x00\x00\x00abc")
	for _, c := range all(t) {
		between := skippable
		switch c.Name() {
		case "s2":
			between = []byte("\x80\x03\x00\x00abc")
		case "gzip", "none":
			continue
		}
		run := c.Append(nil, []byte("one"))
		if c.Name() != "s2" {
			run = append(bytes.Clone(skippable), run...)
		}
		run = append(c.Append(append(run, between...), []byte("two")), between...)
		if got, err := c.AppendDecoded(nil, run, 6); string(got) != "onetwo" || err != nil {
			t.Errorf("%s: %q, %v", c.Name(), got, err)
		}
	}
}

// A frame can't refer to what another call decoded, whoever that was for.
func TestLZ4HasNoMemory(t *testing.T) {
	c, err := ByName("lz4")
	if err != nil {
		t.Fatal(err)
	}
	frame := dependent(t, "secret secret secret")
	if got, err := c.AppendDecoded(nil, frame, 100); err != nil || string(got) != "secret secret secret" {
		t.Fatalf("%q, %v", got, err)
	}
	// One block: no literal, a match of 4 bytes 7 back, then 5 literals as the format asks for.
	thief := lz4Header(t, 0x40, 0x40)
	thief = append(thief, "\x09\x00\x00\x00\x00\x07\x00\x50.....\x00\x00\x00\x00"...)
	for range 20 {
		if _, err := c.AppendDecoded(nil, frame, 100); err != nil {
			t.Fatal(err)
		}
		if got, err := c.AppendDecoded(nil, thief, 100); err == nil {
			t.Fatalf("got %q", got)
		}
	}
}

// dependent returns text as an lz4 frame of one stored block, of the kind whose blocks may refer to earlier ones.
func dependent(t *testing.T, text string) []byte {
	frame := lz4Header(t, 0x40, 0x40)
	frame = binary.LittleEndian.AppendUint32(frame, uint32(len(text))|1<<31)
	return append(append(frame, text...), 0, 0, 0, 0)
}

// lz4Header finds the header checksum by trial: it is one byte, and the reader knows the right one.
func lz4Header(t *testing.T, flags, blocks byte) []byte {
	for sum := range 256 {
		header := []byte{0x04, 0x22, 0x4d, 0x18, flags, blocks, byte(sum)}
		if ok, err := lz4.ValidFrameHeader(header); ok && err == nil {
			return header
		}
	}
	t.Fatal("no checksum fits")
	return nil
}

func TestLimitCountsOutput(t *testing.T) {
	src := lines(10_000)
	for _, c := range all(t) {
		frame := c.Append(nil, src)
		run := append(bytes.Clone(frame), frame...)
		for _, limit := range []int{0, 1, len(src) - 1} {
			got, err := c.AppendDecoded([]byte("kept"), frame, limit)
			if !errors.Is(err, ErrTooLarge) || string(got) != "kept" {
				t.Errorf("%s, limit %d: %d bytes, %v", c.Name(), limit, len(got), err)
			}
		}
		if _, err := c.AppendDecoded(nil, run, 2*len(src)-1); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: the limit is not for all frames together: %v", c.Name(), err)
		}
		if got, err := c.AppendDecoded(nil, run, 2*len(src)); err != nil || len(got) != 2*len(src) {
			t.Errorf("%s: exactly the limit: %d bytes, %v", c.Name(), len(got), err)
		}
	}
}

// C01: what is allocated for a bomb is bounded by the limit, not by what the bomb unfolds to or declares.
func TestC01Bombs(t *testing.T) {
	const limit = 1 << 20
	zeros := make([]byte, 64<<20)
	for _, c := range all(t)[:4] {
		bomb := c.Append(nil, zeros)
		dst, err := c.AppendDecoded(nil, bomb, limit)
		if !errors.Is(err, ErrTooLarge) || cap(dst) > 2*limit {
			t.Errorf("%s: a bomb of %d bytes: %v, buffer of %d", c.Name(), len(bomb), err, cap(dst))
		}
	}
	// A frame of one byte that declares 4 GiB - 1 in a single segment.
	declared := []byte("\x28\xb5\x2f\xfd\xa0\xff\xff\xff\xff\x09\x00\x00x")
	if dst, err := (zstdCoder{}).appendDecoded(nil, declared, limit); err == nil || cap(dst) > limit {
		t.Errorf("declared 4 GiB: %v, buffer of %d", err, cap(dst))
	}
}

func TestC06Window(t *testing.T) {
	e, err := zstd.NewWriter(nil, zstd.WithWindowSize(2*MaxWindow), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	wide := e.EncodeAll(make([]byte, 3*MaxWindow), nil)
	if _, err := all(t)[0].AppendDecoded(nil, wide, 64<<20); !errors.Is(err, ErrWindow) {
		t.Error(err)
	}
}

func TestTruncatedAtEachByte(t *testing.T) {
	for _, c := range all(t)[:4] {
		frame := c.Append(nil, lines(600))
		for n := 1; n < len(frame); n++ {
			if c.Name() == "s2" && n == 10 {
				continue // the stream identifier alone is a stream of nothing
			}
			if got, err := c.AppendDecoded(nil, frame[:n], 1<<20); err == nil || len(got) > 0 {
				t.Errorf("%s: %d of %d bytes: %d bytes, %v", c.Name(), n, len(frame), len(got), err)
			}
		}
	}
}

// A checksum, or the codec's own rules, see every flipped bit that would change the data; but one bit turns a
// chunk of s2 into one to skip, so a frame's own length has to be checked as well.
func TestEachBitFlipped(t *testing.T) {
	src := lines(600)
	for _, c := range all(t)[:4] {
		frame := c.Append(nil, src)
		for bit := range 8 * len(frame) {
			frame[bit/8] ^= 1 << (bit % 8)
			got, err := c.AppendDecoded(nil, frame, 1<<20)
			skipped := c.Name() == "s2" && len(got) == 0
			if err == nil && !bytes.Equal(got, src) && !skipped {
				t.Errorf("%s: bit %d: other data", c.Name(), bit)
			}
			frame[bit/8] ^= 1 << (bit % 8)
		}
	}
}

func TestC10BytesBehindAMember(t *testing.T) {
	gzip := all(t)[3]
	if _, err := gzip.AppendDecoded(nil, append(gzip.Append(nil, []byte("x")), "y"...), 100); err == nil {
		t.Error("a byte behind the member is taken")
	}
}

func TestCodecsAreConcurrent(t *testing.T) {
	src := lines(100_000)
	for _, c := range all(t) {
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				part := src[i*1000:]
				for range 5 {
					got, err := c.AppendDecoded(nil, c.Append(nil, part), len(part))
					if err != nil || !bytes.Equal(got, part) {
						t.Errorf("%s: %v", c.Name(), err)
					}
				}
			})
		}
		wg.Wait()
	}
}

// Coders are pooled: a frame costs next to no allocations, once the pools are filled.
func TestAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("pools forget at random under the race detector")
	}
	src := lines(512 << 10)
	for _, c := range all(t) {
		frame := c.Append(nil, src)
		dst := make([]byte, 0, len(src)+len(frame))
		if n := testing.AllocsPerRun(20, func() { frame = c.Append(frame[:0], src) }); n > 20 {
			t.Errorf("%s: Append: %v", c.Name(), n)
		}
		if n := testing.AllocsPerRun(20, func() { _, _ = c.AppendDecoded(dst, frame, len(src)) }); n > 20 {
			t.Errorf("%s: AppendDecoded: %v", c.Name(), n)
		}
	}
}

func FuzzAppendDecoded(f *testing.F) {
	for i, c := range all(f) {
		f.Add(c.Append(nil, lines(300)), byte(i), 1000)
	}
	f.Fuzz(func(t *testing.T, src []byte, which byte, limit int) {
		limit &= 1<<20 - 1
		c := all(t)[int(which)%5]
		got, err := c.AppendDecoded([]byte("kept"), src, limit)
		if !bytes.HasPrefix(got, []byte("kept")) || len(got) > len("kept")+limit || err != nil && len(got) != len("kept") {
			t.Fatalf("%s, limit %d: %d bytes, %v", c.Name(), limit, len(got), err)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{16 << 10, 64 << 10, 512 << 10} {
		src := lines(size)
		for _, c := range all(b) {
			b.Run(fmt.Sprintf("%s/%dKiB", c.Name(), size>>10), func(b *testing.B) {
				dst := c.Append(nil, src)
				b.SetBytes(int64(len(src)))
				b.ReportAllocs()
				for b.Loop() {
					dst = c.Append(dst[:0], src)
				}
				b.ReportMetric(float64(len(src))/float64(len(dst)), "ratio")
			})
		}
	}
}

func BenchmarkAppendDecoded(b *testing.B) {
	src := lines(512 << 10)
	for _, c := range all(b) {
		b.Run(c.Name(), func(b *testing.B) {
			frame := c.Append(nil, src)
			var dst []byte
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				dst, _ = c.AppendDecoded(dst[:0], frame, 1<<20)
			}
		})
	}
}
