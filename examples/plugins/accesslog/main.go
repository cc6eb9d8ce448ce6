// Command accesslog is a plugin for web server logs: the key is the client's address, and failed requests are dropped.
package main

import "github.com/headgate-io/headgate/sdk/plugin"

var (
	_ = plugin.Configure(configure)
	_ = plugin.Handle(route, plugin.SetsKeys|plugin.Drops|plugin.Deterministic)

	dropFrom int64 // responses from here on are dropped, 0 for none
)

func configure(config []byte) error {
	dropFrom, _ = plugin.JSONInt(config, "drop_status_from")
	return nil
}

func route(event []byte, r *plugin.Result) {
	if status, ok := plugin.JSONInt(event, "response"); ok && dropFrom > 0 && status >= dropFrom {
		r.Drop()
	} else if ip, ok := plugin.JSONString(event, "remote_ip"); ok {
		r.Key(ip)
	}
}

func main() {}
