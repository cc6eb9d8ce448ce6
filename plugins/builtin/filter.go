package builtin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
)

// Rule is one filter of a stream: exactly one of Drop, Keep and Reject.
type Rule struct {
	Name   string     `json:"name,omitempty"`   // in metrics, dry runs and refusals; default: its place in the list, from 1
	Drop   *Condition `json:"drop,omitempty"`   // events that fit are filtered
	Keep   *Condition `json:"keep,omitempty"`   // events that don't fit are filtered
	Reject *Condition `json:"reject,omitempty"` // events that fit are refused: the client is told
	Reason string     `json:"reason,omitempty"` // of Reject, for the client
}

// Tally is how many events a rule has dropped or refused.
type Tally struct {
	Name   string
	Reject bool
	Events int64
}

// Filter drops and refuses events by what they are when they come. It is safe for concurrent use and allocates nothing for
// an event.
type Filter struct {
	rules   []rule
	watch   []jsonscan.Pointer
	headers []string
}

type rule struct {
	when   node
	keep   bool // events that don't fit are meant
	reject bool
	detail string // of a refusal
	stage  string // of a dry run
	twice  string // detail when a name on the way occurs twice
	name   string
	tally  *atomic.Int64 // events
}

// mostReason is how many bytes what a client is told may have, and a rule's name.
const (
	mostReason = 200
	mostName   = 63
)

// NewFilter makes rules ready, and returns nil for none. The pointers that are watched already keep their place. Errors are
// *PathError.
func NewFilter(rules []Rule, watched []jsonscan.Pointer) (*Filter, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	if len(rules) > mostRules {
		return nil, at(fmt.Sprint(mostRules), fmt.Errorf("a stream has at most %d filters", mostRules))
	}
	c := &compiler{watch: slices.Clone(watched)}
	for len(c.watch) < event.MaxFields {
		c.watch = append(c.watch, jsonscan.Pointer{})
	}
	f := &Filter{}
	names := map[string]bool{}
	for i := range rules {
		r, err := c.rule(&rules[i], i)
		if err == nil && names[r.stage] {
			err = at("name", errors.New("two filters have this name"))
		}
		if err != nil {
			return nil, at(fmt.Sprint(i), err)
		}
		names[r.stage] = true
		f.rules = append(f.rules, r)
	}
	f.watch = c.watch
	for i := range f.rules {
		f.rules[i].when.eachTest(func(t *test) {
			if t.header != "" && !slices.Contains(f.headers, t.header) {
				f.headers = append(f.headers, t.header)
			}
		})
	}
	return f, nil
}

func nameOf(r *Rule, i int) string {
	if r.Name != "" {
		return r.Name
	}
	return fmt.Sprint(i + 1)
}

func (c *compiler) rule(from *Rule, i int) (r rule, err error) {
	given := 0
	var key string
	var cond *Condition
	for name, p := range map[string]*Condition{"drop": from.Drop, "keep": from.Keep, "reject": from.Reject} {
		if p != nil {
			given++
			key, cond = name, p
		}
	}
	switch {
	case given != 1:
		return r, errors.New("wants one of drop, keep and reject, with a condition like {json: /level, eq: debug}")
	case from.Reason != "" && key != "reject":
		return r, at("reason", errors.New("only of what is rejected is the client told"))
	case len(from.Reason) > mostReason || !utf8.ValidString(from.Reason) || strings.ContainsFunc(from.Reason, func(r rune) bool { return r < ' ' }):
		return r, at("reason", fmt.Errorf("must be one line of at most %d bytes", mostReason))
	case len(from.Name) > mostName || strings.Trim(from.Name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "":
		return r, at("name", fmt.Errorf("%q is no name: use a-z, 0-9, _ and -, at most %d", from.Name, mostName))
	}
	name := nameOf(from, i)
	r = rule{keep: key == "keep", reject: key == "reject", stage: "filter " + name, name: name, tally: new(atomic.Int64)}
	r.detail = "filter " + name + " refuses such events"
	if from.Reason != "" {
		r.detail = from.Reason + " (filter " + name + ")"
	}
	r.twice = "a name on the way to a value that filter " + name + " looks at occurs twice"
	r.when, err = c.compile(cond, 1)
	return r, at(key, err)
}

// Watch returns the pointers that the syntax check has to watch, those that were watched already in front.
func (f *Filter) Watch() []jsonscan.Pointer { return f.watch }

// Headers returns the names of the headers that are looked at, in lower case.
func (f *Filter) Headers() []string { return f.headers }

// Continue lets the rules of f that old has, too, by name and effect, count on where they are there. Both may be nil.
func (f *Filter) Continue(old *Filter) {
	if f == nil || old == nil {
		return
	}
	for i := range f.rules {
		r := &f.rules[i]
		if at := slices.IndexFunc(old.rules, func(o rule) bool { return o.name == r.name && o.reject == r.reject }); at >= 0 {
			r.tally = old.rules[at].tally
		}
	}
}

// Tallies returns what the rules have done, in their order; trials do not count. f may be nil.
func (f *Filter) Tallies() (all []Tally) {
	if f == nil {
		return nil
	}
	for i := range f.rules {
		all = append(all, Tally{f.rules[i].name, f.rules[i].reject, f.rules[i].tally.Load()})
	}
	return all
}

// Sift decides on event i of b, which has passed all checks; fields is where the values at the watched pointers stand in it.
// The first rule that means the event counts.
func (f *Filter) Sift(b *event.Batch, i int, fields []event.Span) {
	e := &b.Events[i]
	for n := range f.rules {
		r := &f.rules[n]
		yes, ambiguous := r.when.fits(b, e, fields)
		switch {
		case ambiguous:
			b.Reject(i, event.DuplicateName, r.twice)
		case yes == r.keep:
			continue
		case r.reject:
			b.Reject(i, event.FilterRejected, r.detail)
		default:
			e.Verdict = event.Filtered
		}
		if b.Trial {
			b.TraceEvent(i, r.stage)
		} else if !ambiguous && !b.DecodedBefore {
			r.tally.Add(1)
		}
		return
	}
}

// fits reports whether an event fits; ambiguous, that a name on the way to a value occurs twice, and yes says nothing.
func (n *node) fits(b *event.Batch, e *event.Event, fields []event.Span) (yes, ambiguous bool) {
	if n.way == wayTest {
		return n.test.fits(b, e, fields)
	}
	for i := range n.below {
		yes, ambiguous = n.below[i].fits(b, e, fields)
		switch {
		case ambiguous:
			return false, true
		case n.way == wayNot:
			return !yes, false
		case yes == (n.way == wayAny):
			return yes, false
		}
	}
	return n.way == wayAll, false
}

func (n *node) eachTest(visit func(*test)) {
	if n.test != nil {
		visit(n.test)
	}
	for i := range n.below {
		n.below[i].eachTest(visit)
	}
}
