package wire

import (
	"bytes"
	"testing"
)

// From any beginning of a frame one comes to its block by asking for what is said to be needed.
func TestBlockOfABeginning(t *testing.T) {
	m := Meta{Gateway: "g", Stream: "s", First: 1, DataLen: 10, Routes: []Route{{Slot: None, Child: None}}, EventRoute: []uint32{0}, IDs: [][]byte{[]byte("a")}}
	want := AppendMeta(nil, &m, nil)
	for _, codec := range []string{"zstd", "lz4", "s2"} {
		frame := AppendFrame(nil, codec, want, []byte(s2Stream))
		for n := range len(frame) + 1 {
			block, need := Block(frame[:n], codec)
			for steps := 0; block == nil && need > 0; steps++ {
				if need <= n && steps == 0 || need > len(frame) || steps == 3 {
					t.Fatalf("%s: of %d bytes %d are needed", codec, n, need)
				}
				block, need = Block(frame[:need], codec)
			}
			if !bytes.Equal(block, want) && n >= len(s2Stream) {
				t.Fatalf("%s: %d bytes: another block: %q", codec, n, block)
			}
		}
	}
	for _, codec := range []string{"gzip", "none", "zstd"} {
		if block, need := Block([]byte("{\"n\":1}\n{\"n\":2}\n"), codec); block != nil || need != 0 {
			t.Errorf("%s: %q, %d", codec, block, need)
		}
	}
}
