package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/settings"
	"github.com/headgate-io/headgate/plugins"
)

// What may be written for stage and on_suspend.
const (
	StageActive = "active"
	StageShadow = "shadow"
	StageCanary = "canary"

	SuspendPolicy   = "policy"
	SuspendPrevious = "previous"
)

// inStage is the stage, active when nothing is written.
func (p *Plugin) inStage() string { return cmp.Or(p.Stage, StageActive) }

// StageProblem returns what is wrong with stage, percent and on_suspend, as an *event.Problem.
func (p *Plugin) StageProblem() error {
	switch p.inStage() {
	case StageActive, StageShadow:
		if p.Percent != 0 {
			return event.Problemf(event.BadConfiguration, "percent: only a canary has one, stage is %s", p.inStage())
		}
	case StageCanary:
		if p.Percent < 1 || p.Percent > 100 {
			return event.Problemf(event.BadConfiguration, "percent: a canary has 1 to 100 of the producers, got %d", p.Percent)
		}
	default:
		return event.Problemf(event.BadConfiguration, "stage %q: it is active, shadow or canary", p.Stage)
	}
	switch p.OnSuspend {
	case "", SuspendPolicy, SuspendPrevious:
		return nil
	}
	return event.Problemf(event.BadConfiguration, "on_suspend %q: it is policy or previous", p.OnSuspend)
}

// problem returns what is wrong with a plugin that stands in a chain behind others.
func (p *Plugin) problem(before []Plugin) error {
	_, onError := ParseOnError(p.OnError)
	if onError != nil {
		onError = errors.New(event.Detail(onError))
	}
	return errors.Join(settings.At("name", mustBe(ValidName(p.Name), "%q is not a plugin name", p.Name)),
		settings.At("on_error", onError), settings.At("stage", p.placeProblem(before)))
}

// placeProblem refuses a second version that is tried.
func (p *Plugin) placeProblem(before []Plugin) error {
	if err := p.StageProblem(); err != nil {
		return errors.New(event.Detail(err))
	}
	tried := func(q Plugin) bool { return q.Name == p.Name && q.inStage() != StageActive }
	if p.inStage() != StageActive && slices.ContainsFunc(before, tried) {
		return fmt.Errorf("%s has a shadow or a canary already", p.Name)
	}
	return nil
}

// maxKey is how many bytes a partition key may have, whoever sets it.
const maxKey = 1 << 10

// ParseOnError reads reject, deadletter, pass or default_key=KEY; empty leaves it to the kind of plugin.
// Errors are an *event.Problem.
func ParseOnError(text string) (plugins.Policy, error) {
	word, key, _ := strings.Cut(text, "=")
	if len(key) > maxKey {
		return plugins.Policy{}, event.Problemf(event.BadConfiguration, "on_error: the key has %d bytes, the limit is %d", len(key), maxKey)
	}
	return plugins.ParsePolicy(word, key)
}
