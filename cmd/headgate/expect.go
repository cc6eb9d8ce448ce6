package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/headgate-io/headgate/event"
)

// expectation is a line of a file of expectations: what is to become of one event. It is a trialEvent without the place
// and the wording; a code that is not given may be any.
type expectation struct {
	Verdict string `json:"verdict"`
	textOrBytes
	Code event.Code `json:"code,omitempty"`
}

func expectationOf(e trialEvent) expectation {
	return expectation{Verdict: e.Verdict, textOrBytes: e.textOrBytes, Code: e.Code}
}

// expectations compares what becomes of events with a file, line by line.
type expectations struct {
	file   string
	lines  [][]byte
	at     int // lines used
	differ int

	accept   bool // write the file anew instead
	accepted bytes.Buffer
}

func openExpectations(file string, accept bool) (*expectations, error) {
	x := &expectations{file: file, accept: accept}
	if accept {
		return x, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, usageError(err)
	}
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			x.lines = append(x.lines, line)
		}
	}
	return x, nil
}

// check returns what was expected instead, nothing when got is as expected.
func (x *expectations) check(got trialEvent) (want string, err error) {
	have := expectationOf(got)
	if x.accept {
		line, err := json.Marshal(have)
		x.accepted.Write(append(line, '\n'))
		return "", err
	}
	x.at++
	if x.at > len(x.lines) {
		x.differ++
		return "no more events", nil
	}
	line := x.lines[x.at-1]
	var e expectation
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return "", usagef("%s: line %d: %v", x.file, x.at, err)
	}
	if e.Code == "" {
		have.Code = ""
	}
	if e.equal(have) {
		return "", nil
	}
	x.differ++
	return string(line), nil
}

// equal compares by their text.
func (e expectation) equal(other expectation) bool {
	a, errA := json.Marshal(e)
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// finish says how it went; an error when anything differs.
func (x *expectations) finish() (string, error) {
	if x.accept {
		return fmt.Sprintf("%s says now what became of the events", x.file), os.WriteFile(x.file, x.accepted.Bytes(), 0o666)
	}
	if missing := len(x.lines) - x.at; missing > 0 {
		return "", fmt.Errorf("%s expects %d more events than there are", x.file, missing)
	}
	if x.differ > 0 {
		return "", fmt.Errorf("%d of %d events became something else than %s expects", x.differ, x.at, x.file)
	}
	return fmt.Sprintf("all as %s expects", x.file), nil
}
