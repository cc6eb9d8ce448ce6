package gateway

import (
	"fmt"
	"time"
)

// Resume lets the stream's partitions set aside again what the backend refuses. See admin.Purger.
func (g *Gateway) Resume(name string) (partitions int, err error) {
	s, err := g.find(name)
	if err != nil {
		return 0, err
	}
	if partitions = s.forwarder.Resume(); partitions > 0 {
		g.log.Warn("partitions set aside again what the backend refuses", "stream", name, "partitions", partitions)
	}
	return partitions, nil
}

// halted says which partitions set no more events aside, and since when; empty for none.
func (s *stream) halted() (fault string, since time.Time) {
	partitions, since := s.forwarder.Halted()
	if len(partitions) == 0 {
		return "", since
	}
	return fmt.Sprintf("stream %s: the backend refuses event after event in partitions %v, which set no more aside and wait; nothing is lost; "+
		"mend the backend, or let them go on with `headgate stream resume %[1]s`", s.name, partitions), since
}
