package plugins

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/sdk/abi"
)

const (
	testTime  = 5 * time.Second // for all tests of a module; each call has its deadline besides
	mostSaid  = 10              // tests that differ and are told one by one
	eventSaid = 200             // bytes of an event that are told
)

// noteTests runs the tests of a module that started, on an instance of its own and into bills of their own, and adds
// what came out.
func (h *Host) noteTests(ctx context.Context, wasm []byte, m *Module, r *Report) {
	tests, err := TestsOf(wasm)
	switch {
	case err != nil:
		r.note("selftest", codeSelfTest, err.Error())
		return
	case tests == nil:
		return
	}
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	faults, err := h.selfTest(ctx, m, tests)
	if err != nil {
		faults = append(faults, err.Error())
	}
	if r.note("selftest", codeSelfTest, faults...) {
		r.Checks[len(r.Checks)-1].Detail = fmt.Sprintf("%d tests of the module came out as it says", len(tests.Tests))
	}
}

// selfTest returns how tests came out other than they should; the error is why they could not be run.
func (h *Host) selfTest(ctx context.Context, m *Module, t *Tests) (faults []string, err error) {
	chain, err := h.NewChain(ctx, []Step{{
		Name: "self-test", Module: m, Config: t.Config, OnError: Policy{Action: Reject}, apart: true,
	}}, Rules{})
	if err != nil {
		return nil, plain(err)
	}
	defer func() { err = errors.Join(err, chain.Retire()) }()
	run := &testRun{tests: t, scanner: jsonscan.New(defaultDepth, nil)}
	run.syntax, _ = t.syntax()
	for from := 0; from < len(t.Tests); {
		to := from + 1
		for to < len(t.Tests) && to-from < abi.MaxEvents && maps.Equal(t.Tests[to].Headers, t.Tests[from].Headers) {
			to++
		}
		if err := run.batch(ctx, chain, from, to); err != nil {
			return run.faults, plain(err)
		}
		from = to
	}
	if more := run.differ - len(run.faults); more > 0 {
		run.faults = append(run.faults, fmt.Sprintf("and %d more tests came out differently", more))
	}
	return run.faults, nil
}

// plain is an error without the code that it would have in an answer.
func plain(err error) error {
	if p, ok := errors.AsType[*event.Problem](err); ok {
		return errors.New(p.Detail)
	}
	return err
}

type testRun struct {
	tests   *Tests
	syntax  event.Syntax
	scanner *jsonscan.Scanner
	faults  []string
	differ  int
}

// batch runs the tests from up to to.
func (run *testRun) batch(ctx context.Context, chain *Chain, from, to int) error {
	b := &event.Batch{Stream: "self-test", Syntax: run.syntax, Trial: true, Arrived: time.Now().UnixNano()}
	headers := run.tests.Tests[from].Headers
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		b.Headers = append(b.Headers, event.Attr{Name: []byte(name), Value: []byte(headers[name])})
	}
	for i := from; i < to; i++ {
		data := run.tests.Tests[i].data()
		b.Events = append(b.Events, event.Event{Data: data, Slot: event.NoSlot, Child: event.NoSlot})
		if run.syntax != event.JSON {
			continue
		}
		if f := run.scanner.Check(data); f.Code != "" {
			return fmt.Errorf("%s: its event is no JSON: %s at byte %d", run.tests.name(i), f.Detail, f.Offset)
		}
	}
	if err := chain.Process(ctx, b); err != nil {
		return err
	}
	faults := map[int]event.Error{}
	for _, e := range b.Errors {
		faults[e.Index] = e
	}
	for i := range b.Events {
		run.compare(from+i, OutcomeOf(&b.Events[i], b.Original(i), faults[i]), faults[i].Detail)
	}
	return nil
}

// compare notes how the outcome of test i differs from what the module says.
func (run *testRun) compare(i int, got Outcome, detail string) {
	want := run.tests.Tests[i].Expect
	if got.Meets(want) {
		return
	}
	if run.differ++; len(run.faults) == mostSaid {
		return
	}
	if detail != "" {
		detail = ": " + detail
	}
	data := run.tests.Tests[i].data()
	run.faults = append(run.faults, fmt.Sprintf("%s: expected %s, came out %s%s; the event is %s",
		run.tests.name(i), want, got, detail, bytes.ToValidUTF8(data[:min(len(data), eventSaid)], []byte("\uFFFD"))))
}
