package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// damages says in a sentence what the embedded backend has lost, "" for nothing.
func (s *stores) damages() string {
	lost := map[string]uint64{}
	for _, d := range s.events.Damage() {
		lost[d.Stream] += d.Messages
	}
	if len(lost) == 0 {
		return ""
	}
	var all []string
	for _, stream := range slices.Sorted(maps.Keys(lost)) {
		all = append(all, fmt.Sprintf("%s up to %d", stream, lost[stream]))
	}
	return fmt.Sprintf("stored messages are lost to a damage of the disk: %s; see %s/damage.json, and delete that folder when it is dealt with",
		strings.Join(all, ", "), s.aside)
}
