package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/plugins"
)

// tests makes the samples and expectations of a project into tests that its module brings with it. Without expectations, or
// when there are not as many as samples, there are none, and the error says why.
func (p *project) tests() (*plugins.Tests, error) {
	if p.Events == "" || p.Expect == "" {
		return nil, fmt.Errorf("%s names no events, or not what to expect of them", projectFile)
	}
	events, err := readLines(p.path(p.Events))
	if err != nil {
		return nil, err
	}
	expect, err := readLines(p.path(p.Expect))
	if err != nil {
		return nil, err
	}
	if len(events) != len(expect) {
		return nil, fmt.Errorf("%s has %d events and %s %d lines; headgate plugin test --accept writes it anew", p.Events, len(events), p.Expect, len(expect))
	}
	t, scanner := &plugins.Tests{Config: p.Config}, jsonscan.New(64, nil)
	for i, line := range expect {
		want, err := parseExpectation(line)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", p.Expect, i+1, err)
		}
		if scanner.Check(events[i]).Code != "" { // never comes to a plugin
			continue
		}
		t.Tests = append(t.Tests, plugins.Test{Event: string(events[i]), Expect: want})
	}
	return t, nil
}

// embed puts the project's tests into its module, or takes out those that it had when there are none. It returns how many
// there are, and why there are none.
func (p *project) embed() (n int, why, err error) {
	wasm, err := os.ReadFile(p.module())
	if err != nil {
		return 0, nil, fmt.Errorf("the compiler made no module: %w", err)
	}
	tests, why := p.tests()
	if why != nil {
		tests = &plugins.Tests{}
	}
	wasm, err = tests.Embed(wasm)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", p.module(), err)
	}
	return len(tests.Tests), why, os.WriteFile(p.module(), wasm, 0o666)
}

// embedAgain brings the module up to date with what is expected since --accept.
func (s *subject) embedAgain() error {
	if s.dir == "" {
		return nil
	}
	_, _, err := s.embed()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
