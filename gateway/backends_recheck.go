package gateway

import "fmt"

// recheck has the lanes of a backend that was away compare their ends with what it has.
func (g *Gateway) recheck(backend string) {
	for name, s := range *g.streams.Load() {
		if s.delivery.bus != nil && s.delivery.bus == g.bus(name, backend) {
			s.forwarder.Recheck()
		}
	}
}

// backendLosses says what backends have lost that they had confirmed, since the start; "" for nothing.
func (g *Gateway) backendLosses() (note string) {
	for name, s := range *g.streams.Load() {
		if lost, again := s.forwarder.Lost(); lost+again > 0 {
			note = fmt.Sprintf("stream %s: its backend has lost events that it had confirmed: %d were sent again from the spool, up to %d are lost", name, again, lost)
		}
	}
	return note
}
