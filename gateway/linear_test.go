package gateway

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// handedOver is the history of what producers did: of each request the events of each key, when it was called and when answered.
type handedOver struct {
	mu    sync.Mutex
	began time.Time
	calls []appendCall
}

// appendCall is the events of a request for one key of one source.
type appendCall struct {
	of       string // key and source
	client   int
	events   []int // numbers that grow
	from, to time.Duration
	outcome  string // acked, rejected, or unknown: then it may still happen
}

// call notes the beginning of a request, whose events are given by key; what it returns notes its end.
func (h *handedOver) call(client int, events map[string][]int) (end func(outcome string)) {
	from := time.Since(h.began)
	return func(outcome string) {
		to := time.Since(h.began)
		h.mu.Lock()
		defer h.mu.Unlock()
		for of, numbers := range events {
			h.calls = append(h.calls, appendCall{of, client, numbers, from, to, outcome})
		}
	}
}

// appending is a hand-over beside the log that a reader saw of its key and source in the end.
type appending struct {
	appendCall
	log []int
}

// logModel is an append-only log of each key and source: the state is how much of what the reader saw has been appended. What
// was acknowledged is in it, at one moment between call and answer; what was rejected is not; of what nobody knows any part may be, at any
// time from its call on.
var logModel = porcupine.Model{
	Partition: func(all []porcupine.Operation) (parts [][]porcupine.Operation) {
		at := map[string]int{}
		for _, op := range all {
			of := op.Input.(appending).of
			n, ok := at[of]
			if !ok {
				n = len(parts)
				at[of], parts = n, append(parts, nil)
			}
			parts[n] = append(parts[n], op)
		}
		return parts
	},
	Init: func() any { return 0 },
	Step: func(state, input, _ any) (bool, any) {
		at, op := state.(int), input.(appending)
		events := op.events
		if op.outcome == "read" {
			return at == len(op.log), at
		}
		if op.outcome != "acked" {
			events = slices.DeleteFunc(slices.Clone(events), func(n int) bool { return !slices.Contains(op.log, n) })
		}
		ok := (op.outcome != "rejected" || len(events) == 0) && at+len(events) <= len(op.log) && slices.Equal(op.log[at:at+len(events)], events)
		return ok, at + len(events)
	},
	DescribeOperation: func(input, _ any) string {
		op := input.(appending)
		return fmt.Sprintf("%s: %s %v", op.of, op.outcome, op.events)
	},
}

// check says what is wrong with what a reader saw of each key and source, and where that is shown; "" when it could have come about.
func (h *handedOver) check(logs map[string][]int, name string) string {
	var all []porcupine.Operation
	seen := map[string]bool{}
	last := time.Duration(math.MaxInt64 - 1)
	for _, c := range h.calls {
		to := c.to
		if c.outcome == "unknown" {
			to = last - 1
		}
		if !seen[c.of] {
			seen[c.of] = true
			read := appendCall{of: c.of, outcome: "read"}
			all = append(all, porcupine.Operation{ClientId: 1000, Input: appending{read, logs[c.of]}, Call: int64(last), Return: int64(last) + 1})
		}
		all = append(all, porcupine.Operation{ClientId: c.client, Input: appending{c, logs[c.of]}, Call: int64(c.from), Return: int64(to)})
	}
	for of, log := range logs {
		if !seen[of] {
			return fmt.Sprintf("%s: nobody sent %v", of, log)
		}
	}
	if porcupine.CheckOperations(logModel, all) {
		return ""
	}
	if name == "" {
		return "not linearizable"
	}
	_, shown := porcupine.CheckOperationsVerbose(logModel, all, 10*time.Second)
	path := filepath.Join(os.TempDir(), "headgate-"+strings.ReplaceAll(name, "/", "-")+".html")
	if err := porcupine.VisualizePath(logModel, shown, path); err != nil {
		return fmt.Sprintf("not linearizable, and not shown: %v", err)
	}
	return "not linearizable: look at " + path
}

// The model refuses what it should: a swapped pair of acknowledged events, a lost one, a doubled one, one that was rejected.
func TestLogModel(t *testing.T) {
	h := &handedOver{calls: []appendCall{
		{"k", 1, []int{1, 2}, 0, 10, "acked"}, {"k", 1, []int{3}, 20, 30, "unknown"}, {"k", 1, []int{4}, 40, 50, "acked"}, {"k", 1, []int{5}, 60, 70, "rejected"},
	}}
	for _, log := range [][]int{{1, 2, 4}, {1, 2, 3, 4}, {1, 2, 4, 3}} {
		if wrong := h.check(map[string][]int{"k": log}, ""); wrong != "" {
			t.Errorf("%v: %s", log, wrong)
		}
	}
	for _, log := range [][]int{{}, {1, 4}, {2, 1, 4}, {1, 4, 2}, {4, 1, 2}, {1, 2, 2, 4}, {1, 2, 4, 5}, {1, 2, 4, 6}} {
		if h.check(map[string][]int{"k": log}, "") == "" {
			t.Errorf("%v is taken for right", log)
		}
	}
}
