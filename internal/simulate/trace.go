package simulate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/headgate-io/headgate/internal/jsonscan"
)

// Trace is a recorded stream: a JSON value a line, each with its key at a pointer. It is repeated when more events are
// asked for than it has.
type Trace struct {
	keys    []string
	events  []Event
	Keyless int // lines that have no key: they go anywhere and are left out
}

const (
	maxTraceLine  = 16 << 20
	maxTraceDepth = 1000
)

// ReadTrace reads a trace. What an event weighs is the length of its line, and what an event costs besides.
func ReadTrace(r io.Reader, key jsonscan.Pointer, eventCost float64) (*Trace, error) {
	t, scanner := &Trace{}, jsonscan.New(maxTraceDepth, []jsonscan.Pointer{key})
	known := map[string]int{}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxTraceLine)
	var scratch []byte
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		scanner.Fields[0].Len = 0
		if f := scanner.Check(line); f.Code != "" {
			return nil, fmt.Errorf("line %d: %s", n, f.Detail)
		}
		at := scanner.Fields[0]
		value := line[at.Off : at.Off+at.Len]
		if len(value) == 0 || string(value) == "null" || value[0] == '{' || value[0] == '[' {
			t.Keyless++
			continue
		}
		if value[0] == '"' {
			scratch = jsonscan.Unquote(scratch[:0], value)
			value = scratch
		}
		id, ok := known[string(value)]
		if !ok {
			id = len(t.keys)
			known[string(value)] = id
			t.keys = append(t.keys, string(value))
		}
		t.events = append(t.events, Event{id, float64(len(line)) + eventCost})
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(t.events) == 0 {
		return nil, errors.New("no line has a key there")
	}
	return t, nil
}

// Keys returns the keys in the order in which they came.
func (t *Trace) Keys() []string { return t.keys }

// Event returns the event of line n.
func (t *Trace) Event(n int) Event { return t.events[n%len(t.events)] }

// Len is how many events the trace has.
func (t *Trace) Len() int { return len(t.events) }
