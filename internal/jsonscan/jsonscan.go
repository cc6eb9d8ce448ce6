// Package jsonscan checks the syntax of JSON without decoding it, and finds the values at watched pointers in
// the same pass.
//
// What it accepts is RFC 8259 and nothing more. It differs from encoding/json.Valid in two ways only: text must
// be valid UTF-8 (unless PassUTF8), and nesting is limited.
package jsonscan

import (
	"slices"
	"strconv"

	"github.com/headgate-io/headgate/event"
)

// Fault says what is wrong with a text and where; the zero Fault means nothing is.
type Fault struct {
	Code   event.Code // malformed_json, trailing_data, invalid_utf8, too_deep; empty for no fault
	Offset int        // byte in src that is to blame; len(src) when the text ends too early
	Detail string     // a phrase without the offset, the same for all faults of a kind
}

// Scanner checks one text after another without allocating. It is not safe for concurrent use.
type Scanner struct {
	// Fields[i] is where the value at the i-th watched pointer stands, after a call that found no fault.
	// Off counts from src[0] after Check, and from the value's first byte after Value. When Duplicate is
	// set the span is that of the last value found, if any.
	Fields [MaxWatch]event.Span

	// PassUTF8 lets bytes in strings pass that are not UTF-8. Set it before a call.
	PassUTF8 bool

	maxDepth int
	deep     string // what is said of deeper nesting
	watch    []Pointer
	watched  mask
	lengths  uint64 // bit n%64 is set when a watched name is n bytes long: rules out most names at once
	scratch  []byte // holds an unescaped name while it is compared; large enough for every name that can match
	base     int    // index in src from which Fields count
	escaped  bool   // the string scanned last has escapes
	fault    Fault

	guesses [guesses]guess // by member
	members uint           // of the value that were met
}

// MaxWatch is how many pointers a Scanner may watch.
const MaxWatch = 16

// mask is a set of watched pointers: bit i is watch[i].
type mask uint16

// New returns a Scanner that accepts up to maxDepth nested arrays and objects and reports the value at watch[i]
// in Fields[i]. An empty Pointer watches nothing.
func New(maxDepth int, watch []Pointer) *Scanner {
	if len(watch) > MaxWatch {
		panic("BUG: jsonscan: more pointers than can be watched")
	}
	s := &Scanner{maxDepth: maxDepth, watch: slices.Clone(watch), deep: "arrays and objects are nested deeper than the limit of " + strconv.Itoa(maxDepth) + " levels"}
	longest := 0
	for i, p := range watch {
		if !p.Empty() {
			s.watched |= 1 << i
		}
		for _, t := range p.tokens {
			longest = max(longest, len(t.name))
			s.lengths |= 1 << (len(t.name) & 63)
		}
	}
	s.scratch = make([]byte, 0, longest*longestEscape)
	return s
}

// EventFields are the first of Fields, as an event keeps them.
func (s *Scanner) EventFields() [event.MaxFields]event.Span {
	return [event.MaxFields]event.Span(s.Fields[:event.MaxFields])
}

// Check reports what is wrong with src, which must be exactly one JSON value with optional white space around it.
// Data behind the value is trailing_data at the first byte that is not white space.
func (s *Scanner) Check(src []byte) Fault {
	if s.Passes(src) {
		return Fault{}
	}
	return s.fault
}

// Passes tells whether Check finds nothing wrong with src; what it does find is in Fault.
func (s *Scanner) Passes(src []byte) bool {
	end := s.scan(src, space(src, 0), 0)
	if s.fault.Code != "" {
		return false
	}
	if end == len(src) {
		return true
	}
	if end = Skip(src, end); end < len(src) {
		s.fault = Fault{event.TrailingData, end, trailing(src[end])}
	}
	return end == len(src)
}

// Fault is what the last call found.
func (s *Scanner) Fault() Fault { return s.fault }

// Value checks the one value that starts at src[at], or behind white space there, and returns the index behind
// it. The end is known, and checking can go on behind it, also when the fault is invalid_utf8 or too_deep;
// it is -1 when the fault is malformed_json.
func (s *Scanner) Value(src []byte, at int) (end int, f Fault) {
	at = Skip(src, at)
	end = s.scan(src, at, at)
	return end, s.fault
}

// Skip returns the index of the first byte at or behind at that is not JSON white space, len(src) if there is none.
func Skip(src []byte, at int) int {
	for at < len(src) && (src[at] == ' ' || src[at] == '\n' || src[at] == '\r' || src[at] == '\t') {
		at++
	}
	return at
}

// scan checks the value that starts at src[at], notes what is wrong with it in s.fault, and returns the index behind it,
// or -1. Fields count from base.
func (s *Scanner) scan(src []byte, at, base int) int {
	clear(s.Fields[:len(s.watch)])
	if s.fault.Code != "" {
		s.fault = Fault{}
	}
	s.base, s.members = base, 0
	if at == 0 && len(src) >= 3 && string(src[:3]) == "\xef\xbb\xbf" {
		return s.malformed(src, 0, "a byte order mark in front of the value: JSON has none")
	}
	return s.value(src, at, 0, s.watched)
}

// value checks the value whose first byte is src[i]; depth is the number of containers around it, and live the
// pointers whose first depth tokens lead here. It returns the index behind the value, or -1.
func (s *Scanner) value(src []byte, i, depth int, live mask) int {
	if i >= len(src) {
		return s.malformed(src, i, "")
	}
	switch src[i] {
	case '"':
		return s.text(src, i+1)
	case '{':
		return s.object(src, i, depth, live)
	case '[':
		return s.array(src, i, depth, live)
	case 't':
		return s.literal(src, i, "true")
	case 'f':
		return s.literal(src, i, "false")
	case 'n':
		return s.literal(src, i, "null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return s.number(src, i)
	}
	return s.malformed(src, i, "a value is expected")
}

// malformed notes that what is wrong with src[i] hides the end of the value; that wins over a fault before it.
// It returns -1.
func (s *Scanner) malformed(src []byte, i int, detail string) int {
	if i >= len(src) {
		i, detail = len(src), "the text ends before the value does"
	}
	s.fault = Fault{event.MalformedJSON, i, detail}
	return -1
}

// refuse notes a fault that spoils the value but not the way to its end; the first one counts.
func (s *Scanner) refuse(code event.Code, offset int, detail string) {
	if s.fault.Code == "" {
		s.fault = Fault{code, offset, detail}
	}
}

func trailing(first byte) string {
	switch first {
	case '{', '[', '"':
		return "a second value starts here"
	}
	return "data behind the end of the value"
}
