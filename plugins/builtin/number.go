package builtin

import (
	"strconv"

	"github.com/headgate-io/headgate/event"
)

// Number names the events of a session that brought no id: by the session and their number in it.
func Number(b *event.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		if e.Verdict != event.Keep || len(e.ID) > 0 {
			continue
		}
		id := append(append(b.Alloc(len(b.Session) + 21)[:0], b.Session...), '/') // 20 digits at most
		e.ID = strconv.AppendUint(id, b.First+uint64(i), 10)
		b.HasIDs = true
	}
}
