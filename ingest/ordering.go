package ingest

import (
	"github.com/headgate-io/headgate/event"
)

// Class is what a request asks for with Headgate-Ordering: an order that its events keep and that is stricter than their
// stream's. Who asks for the stream's own, or for none at all, gets AsStream. The error is an *event.Problem.
func (s *Settings) Class(word string) (event.Class, error) {
	if word == "" {
		return event.AsStream, nil
	}
	c, no := s.class([]byte(word))
	if no != nil {
		return c, no.Problem
	}
	return c, nil
}

func (s *Settings) class(word []byte) (event.Class, *refusal) {
	own := s.Ordering
	if own == "" {
		own = event.ClassSource.String()
	}
	if string(word) == own {
		return event.AsStream, nil
	}
	asked, ok := event.ParseClass(string(word))
	switch {
	case string(word) != "none" && (!ok || asked == event.AsStream):
		return 0, refuse(event.BadParameter, "Headgate-Ordering is strict or source, not %q", word)
	case own == event.ClassStrict.String() || string(word) == "none":
		return 0, refuse(event.LooserOrdering, "the events of this stream keep the order %s, and a request can ask for a stricter one, not for %s; leave Headgate-Ordering out", own, word)
	}
	return asked, nil
}
