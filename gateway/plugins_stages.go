package gateway

import (
	"cmp"
	"slices"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/plugins"
)

// A stream's chain is a list of activations. Of a plugin there is the version in force and, behind it, at most one that is
// tried: a shadow or a canary. What becomes of the list is decided here and nowhere else; nothing here does anything.

// mostEarlier is how many versions an activation remembers to go back to.
const mostEarlier = 10

func (a *activation) stage() string { return cmp.Or(a.Stage, config.StageActive) }

// runsAs is the stage as package plugins has it.
func (a *activation) runsAs() plugins.Stage {
	switch a.stage() {
	case config.StageShadow:
		return plugins.Shadow
	case config.StageCanary:
		return plugins.Canary
	}
	return plugins.Active
}

// version is what is gone back to.
func (a *activation) version() admin.Earlier {
	return admin.Earlier{Digest: a.Digest, Config: a.Config, OnError: a.OnError, OnSuspend: a.OnSuspend}
}

// sameVersion reports whether two activations of a plugin do the same with events.
func sameVersion(a, b *activation) bool {
	return a.Digest == b.Digest && a.OnError == b.OnError && sameJSON(a.Config, b.Config)
}

// findPlugin returns where a plugin's version in force and its version that is tried are; -1 for none.
func findPlugin(list []activation, plugin string) (inForce, tried int) {
	return slices.IndexFunc(list, func(a activation) bool { return a.Plugin == plugin && a.stage() == config.StageActive }),
		slices.IndexFunc(list, func(a activation) bool { return a.Plugin == plugin && a.stage() != config.StageActive })
}

// enact puts an activation into the list: in the place of the plugin's other one of that kind, which a version that comes into
// force remembers, or beside the plugin, or at the end.
func enact(list []activation, a activation) []activation {
	inForce, tried := findPlugin(list, a.Plugin)
	switch {
	case a.stage() != config.StageActive && tried >= 0:
		list[tried] = a
		return list
	case a.stage() != config.StageActive && inForce >= 0:
		return slices.Insert(list, inForce+1, a)
	case a.stage() != config.StageActive:
		return append(list, a)
	case inForce >= 0:
		a.History = historyOf(&list[inForce], &a)
		list[inForce] = a
	case tried >= 0:
		list = slices.Insert(list, tried, a)
	default:
		return append(list, a)
	}
	if _, tried = findPlugin(list, a.Plugin); tried >= 0 && sameVersion(&list[tried], &a) { // it is promoted
		list = slices.Delete(list, tried, tried+1)
	}
	return list
}

// historyOf is the history of an activation that takes the place of another.
func historyOf(old, next *activation) []admin.Earlier {
	if sameVersion(old, next) {
		return old.History
	}
	all := append([]admin.Earlier{old.version()}, old.History...)
	return all[:min(len(all), mostEarlier)]
}

// succeed gives the activations of a definition what those before them have: their history, and where the version is the same
// its suspension, which nobody has lifted.
func succeed(before, next []activation) []activation {
	for i := range next {
		a := &next[i]
		at, tried := findPlugin(before, a.Plugin)
		if a.stage() != config.StageActive {
			at = tried
		}
		if at < 0 {
			continue
		}
		if old := &before[at]; a.stage() == config.StageActive {
			a.History = historyOf(old, a)
		}
		if old := &before[at]; old.stage() == a.stage() && sameVersion(old, a) {
			a.Suspended = old.Suspended
		}
	}
	return next
}

// rollBack ends a plugin's canary or, when it has none, puts the version before into force, the newest of those that are
// still there.
func rollBack(list []activation, plugin string, there func(digest string) bool) ([]activation, error) {
	inForce, tried := findPlugin(list, plugin)
	if tried >= 0 && list[tried].stage() == config.StageCanary {
		return slices.Delete(list, tried, tried+1), nil
	}
	if inForce < 0 {
		return nil, event.Problemf(event.NothingToDo, "plugin %s is not active", plugin)
	}
	at := slices.IndexFunc(list[inForce].History, func(e admin.Earlier) bool { return there(e.Digest) })
	if at < 0 {
		return nil, event.Problemf(event.NothingToDo, "plugin %s has no version before this one to go back to; activate one with --digest, or deactivate it", plugin)
	}
	list[inForce] = list[inForce].earlier(at)
	return list, nil
}

// earlier is the activation with a version of its history, and the history before that.
func (a activation) earlier(at int) activation {
	e := a.History[at]
	return activation{
		Plugin: a.Plugin, Stage: config.StageActive, Digest: e.Digest, Config: e.Config, OnError: e.OnError, OnSuspend: e.OnSuspend,
		History: a.History[at+1:],
	}
}

// promote puts the version of a plugin that is tried into force.
func promote(list []activation, plugin string) ([]activation, error) {
	_, tried := findPlugin(list, plugin)
	if tried < 0 {
		return nil, event.Problemf(event.NothingToDo, "plugin %s has no shadow and no canary to be promoted", plugin)
	}
	a := list[tried]
	a.Stage, a.Percent, a.Suspended = config.StageActive, 0, nil
	return enact(list, a), nil
}

// resume lifts the suspension of a plugin's versions.
func resume(list []activation, plugin string) ([]activation, error) {
	found := false
	for i := range list {
		if list[i].Plugin == plugin && list[i].Suspended != nil {
			list[i].Suspended, found = nil, true
		}
	}
	if !found {
		return nil, event.Problemf(event.NothingToDo, "plugin %s is not suspended", plugin)
	}
	return list, nil
}

// withdraw takes a plugin out: all of it, or what is in one stage.
func withdraw(list []activation, plugin, stage string) ([]activation, error) {
	n := len(list)
	list = slices.DeleteFunc(list, func(a activation) bool { return a.Plugin == plugin && (stage == "" || a.stage() == stage) })
	switch {
	case len(list) < n:
		return list, nil
	case stage != "":
		return nil, event.Problemf(event.UnknownPlugin, "plugin %s has no version in stage %s", plugin, stage)
	}
	return nil, event.Problemf(event.UnknownPlugin, "plugin %s is not active", plugin)
}
