package plugin

import (
	"testing"
	"unsafe"

	"github.com/headgate-io/headgate/sdk/abi"
)

func TestLayoutsAreThoseOfTheABI(t *testing.T) {
	var c control
	var d descriptor
	var r Result
	for name, pair := range map[string][2]uintptr{
		"control":     {unsafe.Sizeof(c), abi.ControlSize},
		"count":       {unsafe.Offsetof(c.count), abi.CtlCount},
		"first":       {unsafe.Offsetof(c.first), abi.CtlFirst},
		"done":        {unsafe.Offsetof(c.done), abi.CtlDone},
		"data":        {unsafe.Offsetof(c.data), abi.CtlData},
		"dataLen":     {unsafe.Offsetof(c.dataLen), abi.CtlDataLen},
		"descriptors": {unsafe.Offsetof(c.descriptors), abi.CtlEvents},
		"results":     {unsafe.Offsetof(c.results), abi.CtlResults},
		"now":         {unsafe.Offsetof(c.now), abi.CtlNow},
		"flags":       {unsafe.Offsetof(c.flags), abi.CtlFlags},
		"stream":      {unsafe.Offsetof(c.stream), abi.CtlStream},
		"header":      {unsafe.Offsetof(c.header), abi.CtlHeader},
		"headerLen":   {unsafe.Offsetof(c.headerLen), abi.CtlHeaderLen},
		"budget":      {unsafe.Offsetof(c.budget), abi.CtlBudget},
		"descriptor":  {unsafe.Sizeof(d), abi.EventSize},
		"offset":      {unsafe.Offsetof(d.offset), abi.EventOffset},
		"length":      {unsafe.Offsetof(d.length), abi.EventLength},
		"result":      {unsafe.Sizeof(r), abi.ResultSize},
		"key":         {unsafe.Offsetof(r.key), abi.ResKey},
		"keyLen":      {unsafe.Offsetof(r.keyLen), abi.ResKeyLen},
		"verdict":     {unsafe.Offsetof(r.verdict), abi.ResVerdict},
		"code":        {unsafe.Offsetof(r.code), abi.ResCode},
		"value":       {unsafe.Offsetof(r.value), abi.ResValue},
		"valueLen":    {unsafe.Offsetof(r.valueLen), abi.ResValueLen},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %d, in the ABI %d", name, pair[0], pair[1])
		}
	}
}

func TestRegionsAreAlignedAndGivenBack(t *testing.T) {
	var g guest
	for _, size := range []uint32{1, 63, 64, 4096, 100_000} {
		at := g.alloc(size, abi.Alignment)
		if at%abi.Alignment != 0 || g.region(at, size) == nil || g.region(at, size+1) != nil {
			t.Errorf("a region of %d bytes at %d", size, at)
		}
		g.release(at)
		if g.region(at, 1) != nil {
			t.Errorf("the region at %d is still there", at)
		}
	}
	if g.alloc(0, 16) != 0 || g.alloc(16, 0) != 0 || g.alloc(16, 3) != 0 {
		t.Error("a region that makes no sense was given")
	}
}

func TestCopiesStayUntilReset(t *testing.T) {
	var a arena
	var copies [][]byte
	for range 2 {
		for i := range 5000 {
			copies = append(copies, a.copy([]byte{byte(i), byte(i >> 8)}))
		}
		for i, p := range copies {
			if p[0] != byte(i) || p[1] != byte(i>>8) || cap(p) != 2 {
				t.Fatalf("copy %d is %v", i, p)
			}
		}
		copies = copies[:0]
		a.reset()
	}
	if n := testing.AllocsPerRun(10, func() {
		for range 500 {
			a.alloc(10)
		}
		a.reset()
	}); n > 0 {
		t.Errorf("%v allocations once it is large enough", n)
	}
}

func TestHeader(t *testing.T) {
	defer func() { g = guest{} }()
	g.headers = []byte("\x03\x00x-a\x01\x001\x03\x00x-b\x00\x00\x03\x00x-a\x01\x002\x09\x00cut")
	for name, want := range map[string]string{"x-a": "1", "x-b": ""} {
		if got, ok := Header(name); !ok || string(got) != want {
			t.Errorf("%s: %q %v", name, got, ok)
		}
	}
	if _, ok := Header("x-c"); ok {
		t.Error("a header that is not there was found")
	}
}
