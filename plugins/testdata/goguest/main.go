// Command goguest is a plugin that tests drive: what it does with an event is its member "do".
package main

import (
	"errors"

	"github.com/headgate-io/headgate/sdk/plugin"
)

var (
	_ = plugin.Configure(func(config []byte) error {
		if _, ok := plugin.JSONRaw(config, "bad"); ok {
			return errors.New("no bad configuration, please")
		}
		return nil
	})
	_ = plugin.Handle(handle)

	scratch []byte
	garbage [][]byte
)

func handle(event []byte, r *plugin.Result) {
	do, _ := plugin.JSONString(event, "do")
	switch string(do) {
	case "key":
		key, _ := plugin.JSONString(event, "key")
		r.Key(key)
	case "computed": // the buffer is used again for the next event
		key, _ := plugin.JSONRaw(event, "key")
		scratch = append(append(append(scratch[:0], '<'), key...), '>')
		r.Key(scratch)
		scratch = append(scratch, '!')
		r.Replace(scratch)
	case "empty":
		r.Key(nil)
	case "header":
		if tenant, ok := plugin.Header("x-tenant"); ok {
			r.Key(tenant)
		}
	case "config":
		r.Key(plugin.Config())
	case "reject":
		r.Reject(9)
	case "panic":
		panic("as told")
	case "garbage":
		garbage = append(garbage[:len(garbage)%64], make([]byte, 10_000))
	case "all memory":
		for {
			garbage = append(garbage, make([]byte, 1<<20))
		}
	case "count":
		plugin.Count(3, 5)
		plugin.Log(plugin.Warn, "counted")
	case "arrived":
		if plugin.Arrived() == 42 {
			r.Key([]byte("42"))
		}
	}
}

func main() {}
