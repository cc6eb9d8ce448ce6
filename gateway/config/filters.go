package config

import (
	"errors"
	"strconv"
	"strings"

	"github.com/headgate-io/headgate/ingest/cloudevents"
	"github.com/headgate-io/headgate/internal/settings"
	"github.com/headgate-io/headgate/plugins/builtin"
)

// filterProblem returns what is wrong with a stream's filters.
func filterProblem(rules []builtin.Rule) error {
	if _, err := builtin.NewFilter(rules, nil); err != nil {
		if pe, ok := errors.AsType[*builtin.PathError](err); ok {
			return settings.At(pe.Path, pe.Err)
		}
		return err
	}
	for i := range rules {
		for _, c := range []*builtin.Condition{rules[i].Drop, rules[i].Keep, rules[i].Reject} {
			if err := conditionProblem(c); err != nil {
				return settings.At(strconv.Itoa(i), err)
			}
		}
	}
	return nil
}

// conditionProblem refuses names that no header and no attribute can have, and headers with credentials.
func conditionProblem(c *builtin.Condition) error {
	if c == nil {
		return nil
	}
	if err := headerProblem(c.Header); err != nil {
		return err
	}
	switch strings.ToLower(c.Header) {
	case "authorization", "proxy-authorization", "cookie":
		return errors.New("a filter must not look at a header with credentials")
	}
	if c.CE != "" && !cloudevents.ValidName(c.CE) {
		return mustBe(false, "%q is not a CloudEvents attribute: they consist of a-z and 0-9", c.CE)
	}
	all := append(append([]builtin.Condition{}, c.All...), c.Any...)
	for i := range all {
		if err := conditionProblem(&all[i]); err != nil {
			return err
		}
	}
	return conditionProblem(c.Not)
}
