package gateway

import (
	"context"
	"encoding/json"
	"time"

	"github.com/headgate-io/headgate/admin"
)

// trialTime bounds the trial of a plugin, with starting it.
const trialTime = 10 * time.Second

// TryPlugin runs a plugin over sample events. See admin.Trials.
func (g *Gateway) TryPlugin(ctx context.Context, o admin.TrialOrder) (admin.TrialResult, error) {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	if err := configProblem(o.Plugin, o.Config); err != nil {
		return admin.TrialResult{}, err
	}
	step, err := g.loadStep(ctx, &activation{Plugin: o.Plugin, Digest: o.Digest, Config: o.Config})
	if err != nil {
		return admin.TrialResult{}, err
	}
	defer step.Module.Close()
	t, err := g.host.Try(ctx, step, o.Syntax, o.Events)
	if err != nil {
		return admin.TrialResult{}, asProblem("try the plugin", err)
	}
	r := admin.TrialResult{
		Plugin: o.Plugin, Digest: step.Module.Digest, Kept: t.Kept, Filtered: t.Filtered, Rejected: t.Rejected, Failed: t.Failed,
		Cost: t.Cost, Memory: t.Memory, Events: make([]json.RawMessage, len(t.Events)),
	}
	for i := range t.Events {
		if r.Events[i], err = json.Marshal(t.Events[i]); err != nil {
			return admin.TrialResult{}, err
		}
	}
	return r, nil
}
