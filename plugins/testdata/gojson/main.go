// Command gojson is a plugin that decodes each event with encoding/json: slow, and most of what a compiler and a
// garbage collector make.
package main

import (
	"encoding/json"

	"github.com/headgate-io/headgate/sdk/plugin"
)

var _ = plugin.Handle(func(event []byte, r *plugin.Result) {
	var e struct {
		RemoteIP string `json:"remote_ip"`
		Response int    `json:"response"`
	}
	if json.Unmarshal(event, &e) == nil && e.Response < 500 {
		r.Key([]byte(e.RemoteIP))
	} else {
		r.Drop()
	}
}, plugin.SetsKeys|plugin.Drops)

func main() {}
