package gateway

import (
	"encoding/json"
	"testing"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
)

// What is no JSON object is no configuration of a plugin, at an activation and in a trial.
func TestAPluginsConfigurationIsAnObject(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	for _, given := range []string{"[1]", "1", `"{}"`, "null", " true"} {
		_, err := in.Activate(t.Context(), "web", admin.Activation{Plugin: "nobody", Config: json.RawMessage(given)})
		wantCode(t, err, event.BadConfiguration)
		_, err = in.TryPlugin(t.Context(), admin.TrialOrder{Plugin: "nobody", Config: json.RawMessage(given)})
		wantCode(t, err, event.BadConfiguration)
	}
	_, err := in.Activate(t.Context(), "web", admin.Activation{Plugin: "nobody", Config: json.RawMessage(` {"a":[1]}`)})
	wantCode(t, err, event.UnknownPlugin)
}
