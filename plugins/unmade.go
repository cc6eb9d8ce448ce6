package plugins

import (
	"fmt"
	"log/slog"

	"github.com/headgate-io/headgate/event"
)

// sayUnmade logs that an instance could not be made.
func (s *step) sayUnmade(err error) {
	if s.outside.allow() {
		s.outside.log.Error("an instance of the plugin can't be made; the others take its requests, and without others events go by on_error",
			"kind", unmade.String(), "error", firstLine(err))
		s.outside.note(slog.LevelError, "failed with %s: an instance can't be made: %v", unmade, firstLine(err))
	}
}

// giveUp fails the events from b.Events[from] on, for which there is no instance. It counts as if it had trapped on each.
func (s *step) giveUp(b *event.Batch, from int, cause *notMade) {
	n := s.skip(b, from, unmade)
	if n == 0 {
		return
	}
	if reason := s.health.failed(b.Owner, healthCount{events: n, traps: n}); reason != "" && !s.onCopies() {
		s.tripped(reason + "; " + cause.Error())
	}
}

// Ailing says of which versions that batches depend on an instance could not be made when that was tried last.
func (c *Chain) Ailing() (all []string) {
	for _, p := range c.places {
		for _, s := range p.versions() {
			if err := s.pool.making.trouble(); err != nil && !s.health.suspended.Load() {
				all = append(all, fmt.Sprintf("plugin %s (%s, %s) is short of instances: %d of %d are left, and %s: %v",
					s.Name, s.Stage, shortDigest(s.Module.Digest), s.pool.left(), s.pool.size, unmade, firstLine(err)))
			}
		}
	}
	return all
}
