package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/headgate-io/headgate/plugins"
)

// parseExpectation reads a line of a file of expectations: what is to become of one event. A code or reason that is not
// given may be any.
func parseExpectation(line []byte) (o plugins.Outcome, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	return o, d.Decode(&o)
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
	var err error
	x.lines, err = readLines(file)
	return x, err
}

// readLines returns the lines of a file that are not blank.
func readLines(file string) (lines [][]byte, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, usageError(err)
	}
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// check returns what was expected instead, nothing when got is as expected.
func (x *expectations) check(got trialEvent) (want string, err error) {
	if x.accept {
		fmt.Fprintln(&x.accepted, got.Outcome)
		return "", nil
	}
	x.at++
	if x.at > len(x.lines) {
		x.differ++
		return "no more events", nil
	}
	line := x.lines[x.at-1]
	e, err := parseExpectation(line)
	if err != nil {
		return "", usagef("%s: line %d: %v", x.file, x.at, err)
	}
	if got.Meets(e) {
		return "", nil
	}
	x.differ++
	return string(line), nil
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
		return "", fmt.Errorf("%d of %d events became something else than %s expects; if that is meant, --accept writes it anew", x.differ, x.at, x.file)
	}
	return fmt.Sprintf("all as %s expects", x.file), nil
}
