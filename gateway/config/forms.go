package config

import (
	"fmt"

	"github.com/headgate-io/headgate/event"
)

// UnmarshalText reads the short form `ack: durable`, the default.
func (a *Ack) UnmarshalText(text []byte) error {
	if _, ok := event.ParseLevel(string(text)); !ok {
		return fmt.Errorf("%q is no level; write accepted, durable or delivered, or %s", text, a.Example())
	}
	*a = Ack{Default: string(text)}
	return nil
}

// UnmarshalText reads the short form of a plugin that needs no configuration, its name.
func (p *Plugin) UnmarshalText(text []byte) error {
	*p = Plugin{Name: string(text)}
	return nil
}

// The examples are what an error shows of a setting that is written as something else.

// Example shows how acknowledgements are written.
func (Ack) Example() string { return "{default: durable, max: delivered}" }

// Example shows how a plugin is written.
func (Plugin) Example() string { return "{name: accesslog, config: {drop_status_from: 500}}" }

// Example shows how the logs are written.
func (Log) Example() string { return "{level: debug, format: json}" }

// Example shows how a linger is written.
func (Linger) Example() string { return "{waiting: 1ms, idle: 50ms}" }

// Example shows how a frame is written.
func (Frame) Example() string { return "{bytes: 512KiB, events: 10000}" }

// Example shows how limits are written.
func (Limits) Example() string { return "{event: 1MiB, body: 16MiB}" }

// Example shows how a key is written.
func (Key) Example() string { return "{json: /user/id}" }

// Example shows how an id is written.
func (ID) Example() string { return "{json: /id}" }

// Example shows how a stream is written.
func (Stream) Example() string { return "{key: {json: /user/id}}" }

// Example shows how the rate of a stream is written.
func (StreamRate) Example() string { return "{key: {events: 100}}" }

// Example shows how the bounds of plugins are written.
func (Plugins) Example() string {
	return "{memory: 64MiB}; the plugins of a stream stand at streams.NAME.plugins"
}

// Example shows how a caller is written.
func (Token) Example() string {
	return "{id: web, secret: file:/etc/headgate/web, streams: [web], actions: [send]}"
}

// Example shows how callers are written.
func (Auth) Example() string { return "{tokens: [" + Token{}.Example() + "]}" }

// Example shows how a backend is written.
func (Backend) Example() string { return `{webhook: {nodes: ["https://events.example.com/in"]}}` }

// Example shows how a webhook is written.
func (Webhook) Example() string { return `{nodes: ["https://events.example.com/in"]}` }

// Example shows how a JetStream server is written.
func (JetStream) Example() string { return `{url: "nats://127.0.0.1:4222"}` }

// Example shows how a listener is written.
func (HTTP) Example() string { return "{listen: 127.0.0.1:8080}" }

// Example shows how the admin listener is written.
func (Admin) Example() string { return "{listen: 127.0.0.1:9090}" }
