package plugin

import (
	"encoding/binary"
	"unsafe"

	"github.com/headgate-io/headgate/sdk/abi"
)

// guest is the state of the module instance.
type guest struct {
	handle    func([]byte, *Result)
	configure func([]byte) error
	can       Capability
	config    []byte

	regions [][]byte // memory that the host uses

	// The batch being processed.
	control, data, descriptors, results, headers []byte
	arrived                                      int64
	event                                        []byte // the one being handled
	result                                       Result
	object                                       object // the JSON object scanned last
	scanned                                      bool   // object is that of event
	kept                                         arena
}

// g is the only state: exports of a module are functions, and an instance is a guest.
var g guest

// address is where p is in the guest's memory, which pointers of 32 bits reach.
func address(p []byte) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(p)))) }

// alloc gives the host a region that stays where it is until release: the collector moves nothing.
func (g *guest) alloc(size, align uint32) uint32 {
	if size == 0 || align == 0 || align&(align-1) != 0 {
		return 0
	}
	p := make([]byte, uint64(size)+uint64(align))
	skip := -address(p) & (align - 1)
	p = p[skip:][:size:size]
	g.regions = append(g.regions, p)
	return address(p)
}

func (g *guest) release(ptr uint32) {
	for i, r := range g.regions {
		if address(r) == ptr {
			g.regions[i] = nil
			return
		}
	}
}

// region returns the first n bytes of a region the host was given; nil when it was not.
func (g *guest) region(ptr, n uint32) []byte {
	for _, r := range g.regions {
		if len(r) > 0 && address(r) == ptr && uint64(n) <= uint64(len(r)) {
			return r[:n:n]
		}
	}
	return nil
}

// start hands over the configuration. 0 is success.
func (g *guest) start(ptr, n uint32) int32 {
	g.config = g.region(ptr, n)
	if g.handle == nil {
		hostLog(abi.LevelError, "no handler: register one with var _ = plugin.Handle(f) at package level")
		return 1
	}
	if g.configure == nil {
		return 0
	}
	if err := g.configure(g.config); err != nil {
		hostLog(abi.LevelError, err.Error())
		return 1
	}
	return 0
}

// process handles a batch. 0 is success.
func (g *guest) process(ctl uint32) int32 {
	if g.control = g.region(ctl, abi.ControlSize); g.control == nil || g.handle == nil {
		return -1
	}
	n := g.field(abi.CtlCount)
	g.data = g.region(g.field(abi.CtlData), g.field(abi.CtlDataLen))
	g.descriptors = g.region(g.field(abi.CtlEvents), n*abi.EventSize)
	g.results = g.region(g.field(abi.CtlResults), n*abi.ResultSize)
	g.headers = g.region(g.field(abi.CtlHeader), g.field(abi.CtlHeaderLen))
	g.arrived = int64(binary.LittleEndian.Uint64(g.control[abi.CtlNow:]))
	if g.data == nil || g.descriptors == nil || g.results == nil {
		return -1
	}
	g.kept.reset()
	for i := g.field(abi.CtlFirst); i < n; i++ {
		putU32(g.control, abi.CtlDone, i)
		d := g.descriptors[i*abi.EventSize:]
		from := u32(d, abi.EventOffset)
		to := from + u32(d, abi.EventLength)
		g.event, g.scanned = g.data[from:to:to], false
		g.result = Result{}
		g.handle(g.event, &g.result)
		g.write(g.results[i*abi.ResultSize:][:abi.ResultSize])
	}
	putU32(g.control, abi.CtlDone, n)
	g.event, g.scanned = nil, false
	return 0
}

func (g *guest) field(at int) uint32 { return u32(g.control, at) }

func (g *guest) write(dst []byte) {
	r := &g.result
	var key, value uint32
	if r.hasKey {
		key = address(g.stable(r.key))
	}
	if r.verdict == abi.VerdictReplace {
		value = address(g.stable(r.value))
	}
	putU32(dst, abi.ResKey, key)
	binary.LittleEndian.PutUint16(dst[abi.ResKeyLen:], uint16(min(len(r.key), 1<<16-1))) // too long either way
	dst[abi.ResVerdict], dst[abi.ResCode] = r.verdict, r.code
	putU32(dst, abi.ResValue, value)
	putU32(dst, abi.ResValueLen, uint32(len(r.value)))
}

// stable returns bytes equal to p that stay until the next batch and are at an address that is not 0.
func (g *guest) stable(p []byte) []byte {
	if len(p) == 0 {
		return g.control[:0]
	}
	if at := address(p) - address(g.data); uint64(at)+uint64(len(p)) <= uint64(len(g.data)) {
		return p
	}
	return g.kept.copy(p)
}

// arena keeps copies until it is reset. It allocates only while it grows.
type arena struct {
	chunk []byte
	full  [][]byte // earlier chunks, kept because only the host knows that they are in use
}

func (a *arena) reset() {
	clear(a.full)
	a.full, a.chunk = a.full[:0], a.chunk[:0]
}

// alloc returns n bytes.
func (a *arena) alloc(n int) []byte {
	if n > cap(a.chunk)-len(a.chunk) {
		a.full = append(a.full, a.chunk)
		a.chunk = make([]byte, 0, max(2*cap(a.chunk), n, 4<<10))
	}
	from := len(a.chunk)
	a.chunk = a.chunk[:from+n]
	return a.chunk[from : from+n : from+n]
}

func (a *arena) copy(p []byte) []byte {
	q := a.alloc(len(p))
	copy(q, p)
	return q
}

func u32(p []byte, at int) uint32       { return binary.LittleEndian.Uint32(p[at:]) }
func putU32(p []byte, at int, v uint32) { binary.LittleEndian.PutUint32(p[at:], v) }

// text16 takes a text with its length as u16 in front off p.
func text16(p []byte) (text, rest []byte) {
	if len(p) < 2 {
		return nil, nil
	}
	n := min(int(binary.LittleEndian.Uint16(p)), len(p)-2)
	return p[2 : 2+n], p[2+n:]
}
