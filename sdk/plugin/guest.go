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
	control *control
	data    []byte
	headers []byte
	scanned span     // the part of data that members are of, or nowhere
	members []member // of the JSON object scanned last
	escapes uint32   // 0: none of their names has escapes
	kept    arena
}

// g is the only state: exports of a module are functions, and an instance is a guest.
var g guest

// control is the control block as it lies in memory: abi.CtlSize and so on.
type control struct {
	size, count, first, done            uint32
	data, dataLen, descriptors, results uint32
	now                                 int64
	flags, stream, header, headerLen    uint32
	budget, _                           uint32
}

// descriptor is an event's place in the data: abi.EventOffset, abi.EventLength.
type descriptor struct{ offset, length uint32 }

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

// array returns a region as n records, of which the host has filled in all; nil when it is none.
func array[T any](ptr, n uint32) []T {
	var record T
	p := g.region(ptr, n*uint32(unsafe.Sizeof(record)))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(p))), min(int(n), len(p)))
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
	blocks := array[control](ctl, 1)
	if len(blocks) == 0 || g.handle == nil {
		return -1
	}
	c := &blocks[0]
	events, results := array[descriptor](c.descriptors, c.count), array[Result](c.results, c.count)
	data := g.region(c.data, c.dataLen)
	if uint32(len(events)) != c.count || uint32(len(results)) != c.count || data == nil {
		return -1
	}
	g.control, g.data, g.headers = c, data, g.region(c.header, c.headerLen)
	g.scanned = nowhere
	g.kept.reset()
	for i := int(c.first); i < len(events); i++ {
		c.done = uint32(i)
		e, r := events[i], &results[i]
		*r = Result{}
		g.handle(data[e.offset:][:e.length:e.length], r)
	}
	c.done = c.count
	return 0
}

// span is a place in memory.
type span struct{ address, length uint32 }

// nowhere is what no text is.
var nowhere = span{^uint32(0), ^uint32(0)}

func spanOf(p []byte) span { return span{address(p), uint32(len(p))} }

// inBatch reports whether p, which may be empty, is part of the batch's data.
func (g *guest) inBatch(p []byte) bool {
	return uint64(address(p)-address(g.data))+uint64(len(p)) <= uint64(len(g.data))
}

// stable returns the address of bytes equal to p that stay until the next batch. It is never 0.
func (g *guest) stable(p []byte) uint32 {
	if g.inBatch(p) {
		return address(p)
	}
	return g.copied(p)
}

func (g *guest) copied(p []byte) uint32 {
	if len(p) == 0 {
		return address(g.data) | 1
	}
	return address(g.kept.copy(p))
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

// text16 takes a text with its length as u16 in front off p.
func text16(p []byte) (text, rest []byte) {
	if len(p) < 2 {
		return nil, nil
	}
	n := min(int(binary.LittleEndian.Uint16(p)), len(p)-2)
	return p[2 : 2+n], p[2+n:]
}
