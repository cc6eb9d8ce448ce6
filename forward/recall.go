package forward

import "github.com/headgate-io/headgate/forward/spool"

// Recall gives a frame again that the spool had, when it is still in memory; see spool.Recall.
func (f *Forwarder) Recall(partition int32, first uint64, into *spool.Frame) bool {
	if partition < 0 || int(partition) >= len(f.lanes) {
		return false
	}
	l := f.lanes[partition]
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, fr := range l.queue[:l.sealed] {
		if fr.first != first {
			continue
		}
		*into = spool.Frame{
			Partition: partition, First: fr.first, Events: fr.events, Framing: uint8(fr.framing), Codec: fr.codec.Name(),
			TableVersion: fr.tableVersion, Payload: append(into.Payload[:0], fr.payload.b...),
		}
		return true
	}
	return false
}
