package meter

import (
	"math"
	"strings"
)

// reader takes values of the WebAssembly binary format off the front of rest. The first fault empties it and
// stays in bad; reading goes on with zeros, so that a caller looks at bad once, at the end.
type reader struct {
	rest []byte
	bad  string
}

func (r *reader) fail(why string) {
	if r.bad == "" {
		r.bad = why
	}
	r.rest = nil
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.fail("ends too early")
		return nil
	}
	p := r.rest[:n]
	r.rest = r.rest[n:]
	return p
}

func (r *reader) byte() byte {
	if p := r.take(1); len(p) == 1 {
		return p[0]
	}
	return 0
}

// unsigned reads LEB128 of at most that many bits.
func (r *reader) unsigned(bits uint) (v uint64) {
	for shift := uint(0); ; shift += 7 {
		b := r.byte()
		if shift >= bits || shift+7 > bits && b>>(bits-shift) != 0 {
			r.fail("a number is too long")
			return 0
		}
		v |= uint64(b&0x7F) << shift
		if b < 0x80 {
			return v
		}
	}
}

func (r *reader) u32() uint32 { return uint32(r.unsigned(32)) }

func (r *reader) name() []byte { return r.take(uint64(r.u32())) }

// vector calls item as often as the count in front says, or until a fault.
func (r *reader) vector(item func()) {
	for n := r.u32(); n > 0 && r.bad == ""; n-- {
		item()
	}
}

// functionType reads a type, which must be one of a function, and returns it as text: "(i32, i64) -> i32".
func (r *reader) functionType() string {
	const function = 0x60
	if form := r.byte(); form != function && r.bad == "" {
		r.fail("a type that is not one of a function")
	}
	params, results := r.valueTypes(), r.valueTypes()
	return Signature(params, results)
}

func (r *reader) valueTypes() []string {
	var types []string
	r.vector(func() { types = append(types, valueTypeName(r.byte())) })
	return types
}

// Signature is a type of functions as text: "(i32, i64) -> i32".
func Signature(params, results []string) string {
	return "(" + strings.Join(params, ", ") + ") -> " + strings.Join(results, ", ")
}

func valueTypeName(b byte) string {
	switch b {
	case 0x7F:
		return "i32"
	case 0x7E:
		return "i64"
	case 0x7D:
		return "f32"
	case 0x7C:
		return "f64"
	case 0x7B:
		return "v128"
	case 0x70:
		return "funcref"
	case 0x6F:
		return "externref"
	}
	return "unknown"
}

// limits reads the limits of a memory or table.
func (r *reader) limits() Memory {
	const hasMax = 1
	m := Memory{Flags: r.byte()}
	m.Min, m.Max = r.unsigned(64), math.MaxUint32
	if m.Flags&hasMax != 0 {
		m.Max = r.unsigned(64)
	}
	return m
}
