// Package plugin is what a Headgate plugin in Go links: it registers a handler, and the package does the rest of
// the ABI. Build the program as a library for WASI:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o my.wasm .
//
// The package allocates nothing per event, and neither should a handler: fmt and encoding/json cost more than
// everything else on an event's way. A handler runs on one goroutine, events come in their order, and what a
// variable keeps is lost with the instance (there are several, and a panic ends one).
package plugin

import "github.com/headgate-io/headgate/sdk/abi"

// Capability says what a plugin does.
type Capability uint32

// Capabilities, to be combined with |.
const (
	SetsKeys      Capability = abi.SetsKeys
	Drops         Capability = abi.Drops
	Replaces      Capability = abi.Replaces
	KeepsState    Capability = abi.KeepsState    // results depend on earlier events
	Deterministic Capability = abi.Deterministic // the same event always gives the same result
)

// Handle registers the function that sees each event. It is called at package level, since main never runs:
//
//	var _ = plugin.Handle(route)
//
// The event's bytes are lent: they are gone after the batch. A result that is left as it is keeps the event,
// without a key. Without capabilities the plugin is taken to set keys, drop and replace.
func Handle(f func(event []byte, r *Result), can ...Capability) struct{} {
	g.handle = f
	for _, c := range can {
		g.can |= c
	}
	if len(can) == 0 {
		g.can = SetsKeys | Drops | Replaces
	}
	return struct{}{}
}

// Configure registers the function that gets the configuration, once, before the first event: the JSON object of
// the activation, empty when there is none. An error refuses the activation. It is called like Handle.
func Configure(f func(config []byte) error) struct{} {
	g.configure = f
	return struct{}{}
}

// Config returns what Configure got.
func Config() []byte { return g.config }

// Arrived returns when the request came in, in unix nanoseconds.
func Arrived() int64 {
	if g.control == nil {
		return 0
	}
	return g.control.now
}

// Header returns the request's first header of that name, which is in lower case; ok is false when it has none.
// Credentials (authorization, cookie) are never there.
func Header(name string) (value []byte, ok bool) {
	for rest := g.headers; len(rest) > 0; {
		var n, v []byte
		n, rest = text16(rest)
		v, rest = text16(rest)
		if string(n) == name {
			return v, true
		}
	}
	return nil, false
}

// Result is what becomes of one event. It is the handler's until it returns. Its layout is that of abi.ResKey and
// so on: the handler writes what the host reads.
type Result struct {
	key             uint32
	keyLen          uint16
	verdict, code   uint8
	value, valueLen uint32
}

// Key sets the event's key, of at most 1024 bytes; an empty key is a key, too. Bytes that are not part of the
// event are copied.
func (r *Result) Key(key []byte) {
	r.key, r.keyLen = g.stable(key), uint16(min(len(key), 1<<16-1)) // the host refuses one that is too long
}

// Drop filters the event out, which is no error.
func (r *Result) Drop() { r.verdict = abi.VerdictDrop }

// Reject refuses the event; the client is told the reason.
func (r *Result) Reject(reason uint8) { r.verdict, r.code = abi.VerdictReject, reason }

// Replace gives the event new bytes, which are copied. On JSON streams they must be JSON.
func (r *Result) Replace(value []byte) {
	r.verdict, r.value, r.valueLen = abi.VerdictReplace, g.stable(value), uint32(len(value))
}

// Level is the importance of a log line.
type Level uint32

// Levels.
const (
	Debug Level = abi.LevelDebug
	Info  Level = abi.LevelInfo
	Warn  Level = abi.LevelWarn
	Error Level = abi.LevelError
)

// Log writes a line of at most 1 KiB to the gateway's log. The plugin's instances may log 100 lines a second
// together; the rest is counted.
func Log(level Level, line string) { hostLog(uint32(level), line) }

// Count adds to one of the plugin's counters, 0 to 31, which are shown in the gateway's metrics.
func Count(id int, delta int64) { hostCounter(uint32(id), delta) }
