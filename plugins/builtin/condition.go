package builtin

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/headgate-io/headgate/internal/jsonscan"
)

// Condition is what a filter asks of an event: of several conditions (one of All, Any and Not), or of one value of it
// (one of JSON, Header and CE), which every comparison that is given must fit.
type Condition struct {
	All []Condition `json:"all,omitempty"`
	Any []Condition `json:"any,omitempty"`
	Not *Condition  `json:"not,omitempty"`

	JSON   string `json:"json,omitempty"`   // the value at this JSON pointer (RFC 6901)
	Header string `json:"header,omitempty"` // of this header of the request
	CE     string `json:"ce,omitempty"`     // of this CloudEvents attribute

	Exists   *bool  `json:"exists,omitempty"` // it is there, and is not null
	Eq       any    `json:"eq,omitempty"`     // text, a number, true or false
	Ne       any    `json:"ne,omitempty"`     // not Eq, also where there is no value
	Lt       any    `json:"lt,omitempty"`     // a number, or text, which is ordered by its bytes
	Le       any    `json:"le,omitempty"`
	Gt       any    `json:"gt,omitempty"`
	Ge       any    `json:"ge,omitempty"`
	In       []any  `json:"in,omitempty"`
	NotIn    []any  `json:"not_in,omitempty"` // not In, also where there is no value
	Prefix   string `json:"prefix,omitempty"` // of a text
	Suffix   string `json:"suffix,omitempty"`
	Contains string `json:"contains,omitempty"`
	Matches  string `json:"matches,omitempty"` // a regular expression (RE2) that fits somewhere in the first 4 KiB
}

// Bounds of what a stream's filters may be.
const (
	mostRules      = 64
	mostConditions = 256 // of all rules together
	mostListed     = 1000
	mostNested     = 8
	mostPattern    = 1000 // bytes of a regular expression,
	mostSteps      = 1000 // instructions it is compiled to,
	mostMatched    = 4 << 10
)

// node is a condition made ready: a test, or what several nodes must fit.
type node struct {
	way   way
	below []node
	test  *test
}

type way uint8

const (
	wayTest way = iota
	wayAll
	wayAny
	wayNot
)

// compiler makes conditions ready.
type compiler struct {
	watch      []jsonscan.Pointer // the pointers so far, by their place in the scanner
	conditions int
}

func (c *compiler) compile(cond *Condition, depth int) (n node, err error) {
	if c.conditions++; c.conditions > mostConditions {
		return n, fmt.Errorf("the filters of a stream have more than %d conditions", mostConditions)
	}
	if depth > mostNested {
		return n, fmt.Errorf("conditions are nested more than %d deep", mostNested)
	}
	ways := 0
	for _, given := range []bool{cond.All != nil, cond.Any != nil, cond.Not != nil, cond.JSON != "", cond.Header != "", cond.CE != ""} {
		if given {
			ways++
		}
	}
	switch {
	case ways != 1:
		return n, errors.New("wants one of all, any and not, or of json, header and ce")
	case cond.JSON+cond.Header+cond.CE == "" && cond.compares():
		return n, errors.New("eq and the like belong beside json, header or ce")
	case cond.All != nil:
		return c.several(wayAll, "all", cond.All, depth)
	case cond.Any != nil:
		return c.several(wayAny, "any", cond.Any, depth)
	case cond.Not != nil:
		n.way = wayNot
		below, err := c.compile(cond.Not, depth+1)
		n.below = []node{below}
		return n, at("not", err)
	}
	n.test, err = c.testOf(cond)
	return n, err
}

// compares reports whether anything is asked of a value.
func (c *Condition) compares() bool {
	return c.Exists != nil || c.Eq != nil || c.Ne != nil || c.Lt != nil || c.Le != nil || c.Gt != nil || c.Ge != nil ||
		c.In != nil || c.NotIn != nil || c.Prefix+c.Suffix+c.Contains+c.Matches != ""
}

func (c *compiler) several(w way, name string, list []Condition, depth int) (n node, err error) {
	if len(list) == 0 {
		return n, at(name, errors.New("an empty list says nothing"))
	}
	n.way = w
	for i := range list {
		below, err := c.compile(&list[i], depth+1)
		if err != nil {
			return n, at(fmt.Sprintf("%s.%d", name, i), err)
		}
		n.below = append(n.below, below)
	}
	return n, nil
}

// testOf makes the test of one value.
func (c *compiler) testOf(cond *Condition) (*test, error) {
	t := &test{header: strings.ToLower(cond.Header), ce: cond.CE, pointer: -1,
		prefix: cond.Prefix, suffix: cond.Suffix, contains: cond.Contains, exists: cond.Exists}
	if cond.JSON != "" {
		p, err := jsonscan.ParsePointer(cond.JSON)
		if err != nil {
			return nil, at("json", err)
		}
		if t.pointer, err = c.place(p); err != nil {
			return nil, at("json", err)
		}
	}
	for _, given := range []struct {
		name  string
		value any
		how   comparison
	}{{"eq", cond.Eq, equal}, {"ne", cond.Ne, unequal}, {"lt", cond.Lt, less}, {"le", cond.Le, atMost}, {"gt", cond.Gt, more}, {"ge", cond.Ge, atLeast}} {
		if given.value == nil {
			continue
		}
		o, err := operandOf(given.value)
		if err == nil && o.kind == boolean && given.how > unequal {
			err = errors.New("true and false have no order")
		}
		if err != nil {
			return nil, at(given.name, err)
		}
		t.compare = append(t.compare, compared{given.how, o})
	}
	var err error
	if t.in, err = setOf(cond.In); err != nil {
		return nil, at("in", err)
	}
	if t.notIn, err = setOf(cond.NotIn); err != nil {
		return nil, at("not_in", err)
	}
	if t.matches, err = patternOf(cond.Matches); err != nil {
		return nil, at("matches", err)
	}
	t.textual = t.matches != nil || t.prefix+t.suffix+t.contains != ""
	if !cond.compares() {
		return nil, errors.New("says nothing of the value: give exists, eq, ne, lt, le, gt, ge, in, not_in, prefix, suffix, contains or matches")
	}
	return t, nil
}

// place is which of the scanner's fields has the value at p.
func (c *compiler) place(p jsonscan.Pointer) (int, error) {
	for i, q := range c.watch {
		if q.String() == p.String() {
			return i, nil
		}
	}
	if len(c.watch) == jsonscan.MaxWatch {
		return 0, fmt.Errorf("more than %d JSON pointers in a stream, with those of its key and id", jsonscan.MaxWatch)
	}
	c.watch = append(c.watch, p)
	return len(c.watch) - 1, nil
}

// patternOf compiles a regular expression whose cost for a value is bounded; none for "".
func patternOf(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > mostPattern {
		return nil, fmt.Errorf("the regular expression has %d bytes, the limit is %d", len(text), mostPattern)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("no regular expression (RE2): %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if prog, err := syntax.Compile(tree.Simplify()); err != nil || len(prog.Inst) > mostSteps {
		return nil, fmt.Errorf("the regular expression repeats too much: it would be %d steps, the limit is %d", len(prog.Inst), mostSteps)
	}
	return regexp.Compile(text)
}

// PathError is what is wrong with one setting of a filter.
type PathError struct {
	Path string // below the list of filters: 0.drop.all.1.eq
	Err  error
}

// Error puts the path in front.
func (e *PathError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *PathError) Unwrap() error { return e.Err }

// at puts where an error is in front of it; nil stays nil.
func at(path string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*PathError); ok {
		return &PathError{path + "." + e.Path, e.Err}
	}
	return &PathError{path, err}
}
