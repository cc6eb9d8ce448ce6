package compress

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/headgate-io/headgate/internal/race"
)

// contents are n bytes each of what differs for a packer: few or many matches, literals or none, one symbol or all.
func contents(n int) map[string][]byte {
	r := rand.New(rand.NewPCG(3, uint64(n)))
	noise := make([]byte, n)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	digits, mixed := make([]byte, n), bytes.Clone(lines(n))
	for i := range digits {
		digits[i] = '0' + byte(r.IntN(10))
	}
	for at := 0; at+5000 < n; at += 20_000 {
		copy(mixed[at:], noise[:5000])
	}
	far := append(bytes.Clone(noise[:n/2]), noise[:n-n/2]...)
	half := append(bytes.Clone(noise[:n/2]), lines(n)[n/2:]...)
	return map[string][]byte{
		"lines": lines(n), "noise": noise, "digits": digits, "mixed": mixed, "far": far, "half": half,
		"zeros": make([]byte, n), "period 3": bytes.Repeat([]byte("abc"), n/3+1)[:n], "period 1000": bytes.Repeat(noise[:min(n, 1000)], n/min(n, 1000)+1)[:n],
		"two": append(make([]byte, n-4), "aaaa"...), "runs": []byte(strings.Repeat(strings.Repeat("x", 70)+strings.Repeat("y", 90), n/160+1)[:n]),
	}
}

// unpack is what another decoder makes of a frame.
func unpack(t testing.TB, frame []byte) []byte {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	got, err := d.DecodeAll(frame, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

var packedSizes = []int{300, packLeast, packLeast + 1, 1<<16 + 255, 1<<16 + 256, mostBlock - 1, mostBlock, mostBlock + 1, mostBlock + 17, 3*mostBlock + 5, packMost}

func TestPackedFramesComeBack(t *testing.T) {
	p := new(packer)
	for _, n := range packedSizes {
		for name, src := range contents(n) {
			frame := p.append([]byte("kept"), src)
			if string(frame[:4]) != "kept" {
				t.Fatal("what was there is gone")
			}
			if got := unpack(t, frame[4:]); !bytes.Equal(got, src) {
				t.Errorf("%s, %d bytes: other data", name, n)
			}
			if len(frame)-4 > n+3*(n/mostBlock+1)+18 {
				t.Errorf("%s, %d bytes: %d", name, n, len(frame)-4)
			}
		}
	}
}

// The frames are those of a format, not of a library: its own tool reads them.
func TestPackedFramesForTheTool(t *testing.T) {
	tool, err := exec.LookPath("zstd")
	if err != nil {
		t.Skip("needs the command zstd")
	}
	p, dir := new(packer), t.TempDir()
	for _, n := range []int{packLeast, packMost} {
		for name, src := range contents(n) {
			file := filepath.Join(dir, fmt.Sprintf("%s.%d.zst", name, n))
			if err := os.WriteFile(file, p.append(nil, src), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := exec.Command(tool, "-dcq", file).Output()
			if err != nil || !bytes.Equal(got, src) {
				t.Errorf("%s: %v, %d of %d bytes", name, err, len(got), n)
			}
		}
	}
}

// A frame does not become larger for it than the library's.
func TestPackedFramesAreSmall(t *testing.T) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lines", "noise", "digits", "half"} {
		src := contents(packMost)[name]
		if own, other := len(new(packer).append(nil, src)), len(e.EncodeAll(src, nil)); own > other+other/50 {
			t.Errorf("%s: %d bytes, the library %d", name, own, other)
		}
	}
}

func TestPackingAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	p, dst := new(packer), make([]byte, 0, 2*packMost)
	all := contents(packMost)
	if n := testing.AllocsPerRun(3, func() {
		for _, src := range all {
			p.append(dst, src)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// program makes content of a fuzzer's bytes: runs of new bytes, and repetitions from near and far.
func program(code []byte) (out []byte) {
	r := rand.New(rand.NewPCG(uint64(len(code)), 7))
	for len(code) >= 3 && len(out) < packMost/2 {
		op, a, b := code[0], int(code[1]), int(code[2])
		code = code[3:]
		switch {
		case op < 64: // as they are
			n := min(a, len(code))
			out = append(out, code[:n]...)
		case op < 96:
			for range a << (op & 3) {
				out = append(out, byte(r.IntN(b+1)))
			}
		case len(out) == 0:
		default:
			back := 1 + (a<<8|b)<<(op&3)%len(out)
			for range 3 + int(op)&^3<<(b&7) {
				out = append(out, out[len(out)-min(back, len(out))])
			}
		}
	}
	for len(out) < 256 {
		out = append(out, byte(len(out)))
	}
	return out[:min(len(out), packMost)]
}

func TestPackedProgramsComeBack(t *testing.T) {
	p, r := new(packer), rand.New(rand.NewPCG(5, 6))
	for i := range 60 {
		code := make([]byte, 3*(1+r.IntN(1<<(2+r.IntN(9)))))
		for i := range code {
			code[i] = byte(r.Uint32())
		}
		src := program(code)
		if got := unpack(t, p.append(nil, src)); !bytes.Equal(got, src) {
			t.Fatalf("program %d, %d bytes: other data", i, len(src))
		}
	}
}

func FuzzPack(f *testing.F) {
	f.Add(lines(600), false)
	f.Add([]byte("\x00\x05\x00hello\x80\x00\x04\x50\x30\xff\xc4\x01\x00"), true)
	p := new(packer)
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, src []byte, isProgram bool) {
		if isProgram || len(src) < 256 || len(src) > packMost {
			src = program(src)
		}
		got, err := d.DecodeAll(p.append(nil, src), nil)
		if err != nil || !bytes.Equal(got, src) {
			t.Fatalf("%d bytes: %v", len(src), err)
		}
	})
}
