package forward

import (
	"math/rand/v2"
	"testing"
)

func TestBufferClasses(t *testing.T) {
	for n := 8; n <= 1<<16; n++ {
		size := classSize(class(n))
		if size < n || (n > 64 && size*4 > n*5+32) {
			t.Fatalf("%d bytes get a buffer of %d", n, size)
		}
	}
	if got := classSize(class(largestBuffer)); got != largestBuffer || class(largestBuffer) >= len(pools) {
		t.Errorf("largest class has %d bytes", got)
	}
}

func TestBuffersAreAsLargeAsAsked(t *testing.T) {
	for _, n := range []int{0, 1, 511, 512, 513, 100_000, largestBuffer, largestBuffer + 1} {
		for range 3 {
			p := take(n)
			if cap(p.b) < n || len(p.b) != 0 {
				t.Fatalf("asked for %d, got %d with %d used", n, cap(p.b), len(p.b))
			}
			give(p)
		}
	}
	give(&buffer{b: make([]byte, 0, 1000)}) // between two classes: serves the smaller one
	if p := take(1000); cap(p.b) < 1000 {
		t.Errorf("asked for 1000, got %d", cap(p.b))
	}
}

// The table finds what a map finds, used again and again, with tags that collide.
func TestTableAgainstAMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var tab positions
	for range 50 {
		n := rnd.IntN(3000)
		tab.reset(n)
		truth := map[uint32][]uint32{}
		for at := range n {
			tag := uint32(rnd.IntN(1500)) << (rnd.IntN(2) * 16)
			var got []uint32
			place, found := tab.seek(tag, tag)
			for ; found; place, found = tab.seek(place+1, tag) {
				got = append(got, tab.at(place))
			}
			if len(got) != len(truth[tag]) {
				t.Fatalf("tag %d: found %v, want %v in any order", tag, got, truth[tag])
			}
			tab.put(place, tag, at)
			truth[tag] = append(truth[tag], uint32(at))
		}
	}
}

func TestWithinFindsViewsOnly(t *testing.T) {
	data := []byte(`{"k":"a","l":"a"}`)
	for name, c := range map[string]struct {
		key  []byte
		want int32
	}{
		"a view":            {data[6:7], 6},
		"the second of two": {data[14:15], 14},
		"all":               {data, 0},
		"empty":             {data[6:6], 6},
		"a capped view":     {data[14:15:15], -1},
		"a copy":            {[]byte("a"), -1},
		"another's bytes":   {append(make([]byte, 0, cap(data)-3), 'a'), -1},
		"beyond the end":    {data[: len(data)-1 : len(data)][16:16:16], -1},
		"larger":            {make([]byte, cap(data)+8), -1},
	} {
		if got := within(data, c.key); got != c.want && !(len(c.key) == 0 && got >= 0) {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
