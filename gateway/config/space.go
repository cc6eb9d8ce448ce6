package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/headgate-io/headgate/internal/settings"
)

// MaxPayload is the largest message of the embedded server, headers included.
const MaxPayload = 8 << 20

// LargestRun is what the largest frame of a stream may take in its backend: full of events, or one event alone.
func (s *Stream) LargestRun() settings.Bytes {
	return max(s.Frame.Bytes, s.Limits.Event) + FrameOverhead
}

// LeastRoom is the least max_bytes with which a run of so many bytes always goes into an empty backend: with less, what is kept
// for other streams could leave too little.
func LeastRoom(run settings.Bytes) settings.Bytes { return 2 * run }

// roomIn refuses a max_bytes that the largest frame of a stream could find too small for ever.
func (c *Config) roomIn(name string, js *JetStream) error {
	if js == nil || js.MaxBytes == 0 {
		return nil
	}
	streams := maps.Clone(c.Streams)
	if c.CreatesStreams() && name == LocalBackend {
		streams = map[string]Stream{"any": Stream{}.WithDefaults()}
		maps.Copy(streams, c.Streams)
	}
	for _, at := range slices.Sorted(maps.Keys(streams)) {
		s := streams[at]
		if dead := name == LocalBackend; s.Backend != name && !dead {
			continue // dead letters of all streams are here, with events as large
		}
		if least := LeastRoom(s.LargestRun()); js.MaxBytes < least {
			return fmt.Errorf("must be at least %s for frame.bytes %s and limits.event %s of stream %s, got %s", least, s.Frame.Bytes, s.Limits.Event, at, js.MaxBytes)
		}
	}
	return nil
}

// SureOf is the least max_bytes of which the part that a stream is sure of holds an event of that size.
func SureOf(event settings.Bytes) settings.Bytes {
	const MiB = 1 << 20
	return (SureShare*(event+FrameOverhead) + MiB - 1) / MiB * MiB
}
