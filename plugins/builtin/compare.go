package builtin

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"sync"
	"unsafe"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
)

// comparison is how a value stands to an operand.
type comparison uint8

const (
	equal comparison = iota
	unequal
	less
	atMost
	more
	atLeast
)

type kind uint8

const (
	absent    kind = iota // not there, or null
	composite             // an object or an array
	boolean
	number
	text
)

// operand is what a value is compared with.
type operand struct {
	kind kind
	text string
	yes  bool
	num  numeral
}

// numeral is a number: exact when it is a whole one of at most 18 digits.
type numeral struct {
	whole bool
	i     int64
	f     float64
}

func operandOf(v any) (o operand, err error) {
	switch v := v.(type) {
	case string:
		return operand{kind: text, text: v}, nil
	case bool:
		return operand{kind: boolean, yes: v}, nil
	case int, int64, uint64, float64:
		n, ok := numeralOf([]byte(fmt.Sprint(v)))
		if ok {
			return operand{kind: number, num: n}, nil
		}
	}
	return o, fmt.Errorf("wants text, a number, true or false, got %v", v)
}

type compared struct {
	how comparison
	operand
}

// test is what is asked of one value.
type test struct {
	pointer    int    // place of the value in the scanner's fields; -1: none
	header, ce string // where it is else

	exists                   *bool
	compare                  []compared
	in, notIn                *set
	textual                  bool // one of these is given:
	prefix, suffix, contains string
	matches                  *regexp.Regexp
}

// value is one value of an event.
type value struct {
	kind  kind
	raw   []byte // of a text without its quotes and escapes
	num   numeral
	loose bool // a text that comes from where there are only texts: it may be meant as a number or a boolean
}

// as is v as a value of kind k, where it can be meant so.
func (v value) as(k kind) value {
	if !v.loose {
		return v
	}
	switch k {
	case boolean:
		if s := string(v.raw); s == "true" || s == "false" {
			return value{kind: boolean, raw: v.raw}
		}
	case number:
		if len(v.raw) > 0 && len(bytes.Trim(v.raw, "0123456789+-.eE")) == 0 && len(v.raw) <= 64 {
			if n, ok := numeralOf(v.raw); ok {
				return value{kind: number, raw: v.raw, num: n}
			}
		}
	}
	return v
}

// scratch holds texts without their escapes while they are looked at.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// mostScratch is how much of it is kept.
const mostScratch = 64 << 10

// fits reports whether the value of event i fits; ambiguous, that its name occurs twice.
func (t *test) fits(b *event.Batch, e *event.Event, fields []event.Span) (yes, ambiguous bool) {
	var v value
	switch {
	case t.pointer >= 0 && t.pointer < len(fields):
		span := fields[t.pointer]
		if span.Duplicate {
			return false, true
		}
		if span.Len > 0 {
			raw := e.Data[span.Off:][:span.Len]
			if raw[0] == '"' && bytes.IndexByte(raw, '\\') >= 0 {
				return t.escaped(raw), false
			}
			v = valueOf(raw)
		}
	case t.header != "":
		for i := range b.Headers {
			if string(b.Headers[i].Name) == t.header {
				v = value{kind: text, raw: b.Headers[i].Value, loose: true}
				break
			}
		}
	case t.ce != "":
		if raw, ok := attribute(e, t.ce); ok {
			v = value{kind: text, raw: raw, loose: true}
		}
	}
	return t.judge(&v), false
}

// escaped is judge for a text with escapes, with its quotes.
func (t *test) escaped(raw []byte) bool {
	p := scratch.Get().(*[]byte)
	plain := jsonscan.Unquote((*p)[:0], raw)
	yes := t.judge(&value{kind: text, raw: plain})
	if cap(plain) <= mostScratch {
		*p = plain
	}
	scratch.Put(p)
	return yes
}

// valueOf reads a JSON value that has no escapes.
func valueOf(raw []byte) value {
	switch raw[0] {
	case '"':
		return value{kind: text, raw: raw[1 : len(raw)-1]}
	case 'n':
		return value{}
	case 't', 'f':
		return value{kind: boolean, raw: raw}
	case '{', '[':
		return value{kind: composite}
	}
	n, _ := numeralOf(raw)
	return value{kind: number, raw: raw, num: n}
}

func (t *test) judge(v *value) bool {
	if t.exists != nil && *t.exists != (v.kind != absent) {
		return false
	}
	for i := range t.compare {
		if !t.compare[i].fits(v) {
			return false
		}
	}
	if t.in != nil && !t.in.has(v) || t.notIn != nil && t.notIn.has(v) {
		return false
	}
	return !t.textual || v.kind == text && t.judgeText(v.raw)
}

func (t *test) judgeText(raw []byte) bool {
	return len(raw) >= len(t.prefix) && string(raw[:len(t.prefix)]) == t.prefix &&
		len(raw) >= len(t.suffix) && string(raw[len(raw)-len(t.suffix):]) == t.suffix &&
		(t.contains == "" || bytes.Contains(raw, unsafe.Slice(unsafe.StringData(t.contains), len(t.contains)))) &&
		(t.matches == nil || t.matches.Match(raw[:min(len(raw), mostMatched)]))
}

// fits compares with one operand. Values of another kind are unequal and have no order; but a text from a header or an
// attribute is compared with a number as one.
func (c *compared) fits(v *value) bool {
	if v.loose {
		w := v.as(c.kind)
		v = &w
	}
	if c.how == equal || c.how == unequal {
		return c.is(v) == (c.how == equal)
	}
	if c.kind != v.kind {
		return false
	}
	order := 0
	if c.kind == text {
		order = cmp.Compare(unsafe.String(unsafe.SliceData(v.raw), len(v.raw)), c.text)
	} else {
		var ok bool
		if order, ok = v.num.compare(c.num); !ok {
			return false
		}
	}
	switch c.how {
	case less:
		return order < 0
	case atMost:
		return order <= 0
	case more:
		return order > 0
	}
	return order >= 0
}

// is reports whether v is the operand.
func (o *operand) is(v *value) bool {
	if o.kind != v.kind {
		return false
	}
	switch o.kind {
	case text:
		return string(v.raw) == o.text
	case number:
		order, ok := v.num.compare(o.num)
		return ok && order == 0
	}
	return o.yes == (v.raw[0] == 't')
}

// numeralOf reads a number as JSON writes it.
func numeralOf(raw []byte) (n numeral, ok bool) {
	if n.i, n.whole = wholeOf(raw); n.whole {
		return n, true
	}
	f, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(raw), len(raw)), 64)
	if err != nil && !math.IsInf(f, 0) {
		return n, false
	}
	return numeral{f: f}, true
}

// wholeOf reads a whole number of at most 18 digits.
func wholeOf(raw []byte) (i int64, ok bool) {
	digits := raw
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		i = i*10 + int64(c-'0')
	}
	if len(digits) < len(raw) {
		i = -i
	}
	return i, true
}

// compare is exact between whole numbers of at most 18 digits; others are compared as float64.
func (n numeral) compare(o numeral) (order int, ok bool) {
	if n.whole && o.whole {
		return cmp.Compare(n.i, o.i), true
	}
	a, b := n.float(), o.float()
	return cmp.Compare(a, b), !math.IsNaN(a) && !math.IsNaN(b)
}

func (n numeral) float() float64 {
	if n.whole {
		return float64(n.i)
	}
	return n.f
}

// set is a list of operands.
type set struct {
	texts   map[string]struct{}
	wholes  map[int64]struct{}
	numbers []numeral
	yes, no bool
}

func setOf(list []any) (*set, error) {
	if list == nil {
		return nil, nil
	}
	if len(list) == 0 {
		return nil, errors.New("an empty list says nothing")
	}
	if len(list) > mostListed {
		return nil, fmt.Errorf("%d values, the limit is %d; a plugin may have more", len(list), mostListed)
	}
	s := &set{texts: map[string]struct{}{}, wholes: map[int64]struct{}{}}
	for i, v := range list {
		o, err := operandOf(v)
		if err != nil {
			return nil, fmt.Errorf("value %d %w", i, err)
		}
		switch o.kind {
		case text:
			s.texts[o.text] = struct{}{}
		case number:
			s.numbers = append(s.numbers, o.num)
			if o.num.whole {
				s.wholes[o.num.i] = struct{}{}
			}
		case boolean:
			s.yes, s.no = s.yes || o.yes, s.no || !o.yes
		}
	}
	return s, nil
}

// has reports whether v is one of the values.
func (s *set) has(v *value) bool {
	if v.loose {
		for _, k := range [...]kind{number, boolean} {
			if w := v.as(k); w.kind == k && s.has(&w) {
				return true
			}
		}
	}
	switch v.kind {
	case text:
		_, yes := s.texts[string(v.raw)]
		return yes
	case number:
		return s.hasNumber(v.num)
	case boolean:
		return s.yes && v.raw[0] == 't' || s.no && v.raw[0] == 'f'
	}
	return false
}

func (s *set) hasNumber(n numeral) bool {
	if n.whole && len(s.wholes) == len(s.numbers) {
		_, yes := s.wholes[n.i]
		return yes
	}
	for _, m := range s.numbers {
		if order, ok := n.compare(m); ok && order == 0 {
			return true
		}
	}
	return false
}
