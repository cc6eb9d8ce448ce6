package gateway

import (
	"fmt"
	"maps"
	"slices"

	"github.com/headgate-io/headgate/internal/settings"
)

// maxPayload is the largest message of the embedded server, headers included.
const maxPayload = 8 << 20

// largestRun is what the largest frame of a stream may take in its backend: full of events, or one event alone.
func (s *StreamConfig) largestRun() settings.Bytes {
	return max(s.Frame.Bytes, s.Limits.Event) + frameOverhead
}

// room is the least max_bytes with which a run of so many bytes always goes into an empty backend: with less, what is kept
// for other streams could leave too little.
func room(run settings.Bytes) settings.Bytes { return 2 * run }

// roomIn refuses a max_bytes that the largest frame of a stream could find too small for ever.
func (c *Config) roomIn(name string, js *JetStreamConfig) error {
	if js == nil || js.MaxBytes == 0 {
		return nil
	}
	streams := maps.Clone(c.Streams)
	if c.autoCreate() && name == LocalBackend {
		streams = map[string]StreamConfig{"any": StreamConfig{}.withDefaults()}
		maps.Copy(streams, c.Streams)
	}
	for _, at := range slices.Sorted(maps.Keys(streams)) {
		s := streams[at]
		if dead := name == LocalBackend; s.Backend != name && !dead {
			continue // dead letters of all streams are here, with events as large
		}
		if least := room(s.largestRun()); js.MaxBytes < least {
			return fmt.Errorf("must be at least %s for frame.bytes %s and limits.event %s of stream %s, got %s", least, s.Frame.Bytes, s.Limits.Event, at, js.MaxBytes)
		}
	}
	return nil
}

// sureOf is the least max_bytes of which the part that a stream is sure of holds an event of that size.
func sureOf(event settings.Bytes) settings.Bytes {
	const MiB = 1 << 20
	return (sureShare*(event+frameOverhead) + MiB - 1) / MiB * MiB
}
