package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// stand-ins for compressed data: SplitFrame looks at nothing but where s2 begins.
func compressed(codec, text string) []byte {
	if codec == codecS2 {
		return []byte(s2Stream + text)
	}
	return []byte(text)
}

// frameOf returns a frame whose block says how long data is.
func frameOf(codec string, data []byte) (frame, block []byte) {
	m, raw := full()
	m.DataLen = uint64(len(data))
	block = AppendMeta(nil, m, raw)
	return AppendFrame(nil, codec, block, data), block
}

func TestSplitFrameWalksARun(t *testing.T) {
	for _, codec := range []string{codecZstd, codecLZ4, codecS2} {
		texts := []string{"first", "", strings.Repeat("third", 1000)}
		var run []byte
		var blocks [][]byte
		for _, text := range texts {
			frame, block := frameOf(codec, compressed(codec, text))
			run, blocks = append(run, frame...), append(blocks, block)
		}
		n := 0
		for rest := run; len(rest) > 0; n++ {
			block, data, after, err := SplitFrame(rest, codec)
			if err != nil {
				t.Fatalf("%s: frame %d: %v", codec, n, err)
			}
			if !bytes.Equal(block, blocks[n]) || !bytes.HasSuffix(data, []byte(texts[n])) {
				t.Errorf("%s: frame %d: %d bytes of block, data %q", codec, n, len(block), data)
			}
			if codec != codecS2 && len(data) != len(texts[n]) {
				t.Errorf("%s: frame %d: data %q", codec, n, data)
			}
			rest = after
		}
		if n != len(texts) {
			t.Errorf("%s: %d frames", codec, n)
		}
	}
}

// A run cut anywhere but between frames is never taken for whole: SplitFrame sees it, or (in the first bytes,
// which are not ours alone) hands out bytes that no decompressor takes.
func TestSplitFrameTruncatedAtEachByte(t *testing.T) {
	for _, codec := range []string{codecZstd, codecLZ4, codecS2} {
		frame, _ := frameOf(codec, compressed(codec, "some data"))
		for n := 1; n < len(frame); n++ {
			block, data, rest, err := SplitFrame(frame[:n], codec)
			foreign := block == nil && len(data) == n && len(rest) == 0
			mark := len(skippable)
			if codec == codecS2 {
				mark = len(s2Stream)
			}
			if n < mark && !(err == nil && foreign) || n >= mark && !errors.Is(err, ErrTruncated) {
				t.Errorf("%s: %d of %d bytes: %v", codec, n, len(frame), err)
			}
		}
	}
}

func TestFramesWithoutBlock(t *testing.T) {
	for codec, data := range map[string]string{
		"none":    "{}\n{}\n",
		"gzip":    "\x1f\x8b...",
		codecZstd: "\x28\xb5\x2f\xfd a frame of somebody else",
		codecLZ4:  skippable + "\x04\x00\x00\x00what",
		codecS2:   s2Stream + "\x01...",
	} {
		block, got, rest, err := SplitFrame([]byte(data), codec)
		if block != nil || string(got) != data || len(rest) != 0 || err != nil {
			t.Errorf("%s: %q %q %q %v", codec, block, got, rest, err)
		}
	}
	for _, codec := range []string{"none", "gzip"} {
		if frame, _ := frameOf(codec, []byte("data")); string(frame) != "data" {
			t.Errorf("%s: %q", codec, frame)
		}
	}
}

func TestSplitFrameRefusesABlockWithoutFrameColumn(t *testing.T) {
	for _, block := range [][]byte{bare(), bare(colEpochs, "\x01\x01"), bare(colFrame, "\x01\x01")} {
		run := AppendFrame(nil, codecZstd, block, []byte("data"))
		if _, _, _, err := SplitFrame(run, codecZstd); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", block, err)
		}
	}
}

func TestIDs(t *testing.T) {
	id := FrameID("0123456789abcdef", "web", 4294967295, 18446744073709551615)
	if id != "0123456789abcdef.web.4294967295.18446744073709551615" {
		t.Error(id)
	}
	if run := RunID("g.web.0.1", 12); run != "g.web.0.1+12" {
		t.Error(run)
	}
}

func FuzzSplitFrame(f *testing.F) {
	names := []string{codecZstd, codecLZ4, codecS2, "gzip", "none"}
	for i, codec := range names {
		frame, _ := frameOf(codec, compressed(codec, "data"))
		f.Add(append(frame, frame...), byte(i))
	}
	f.Fuzz(func(t *testing.T, run []byte, which byte) {
		codec := names[int(which)%len(names)]
		for len(run) > 0 {
			block, data, rest, err := SplitFrame(run, codec)
			if err != nil {
				return
			}
			if len(rest) >= len(run) || len(block)+len(data) > len(run)+len(block) || !bytes.HasSuffix(run, rest) {
				t.Fatalf("%d bytes: block %d, data %d, rest %d", len(run), len(block), len(data), len(rest))
			}
			if block != nil && codec != codecS2 && !bytes.Equal(AppendFrame(nil, codec, block, data), run[:len(run)-len(rest)]) {
				t.Fatal("the parts are not the frame")
			}
			run = rest
		}
	})
}
