package gateway

import (
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/plugins"
)

// configProblem says what is wrong with the configuration that a plugin is to have, nil when nothing is. One that was stored
// before this was asked is still given to the plugin.
func configProblem(plugin string, config []byte) error {
	if plugins.ConfigFits(config) {
		return nil
	}
	return event.Problemf(event.BadConfiguration, `config of plugin %s: it is a JSON object, like {"name": "value"}, or left out`, plugin)
}
