package gateway

import (
	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
)

// handOver is letters that were handed over, and what has become of them once done is closed.
type handOver struct {
	letters []admin.Letter
	done    chan struct{}
	fates   []event.Verdict
	err     error // it will never be known
}

// late is the batch's Late.
func (h *handOver) late(b *event.Batch, err error) { h.outcome(b, err) }

func (h *handOver) outcome(b *event.Batch, err error) {
	h.err = err
	for i := range b.Events {
		h.fates = append(h.fates, b.Events[i].Verdict)
	}
	close(h.done)
}

// count adds the outcome of a batch to the sums, as which its letters are not left any more unless they were refused.
func (h *handOver) count(b *event.Batch, sums *admin.ReplaySums) {
	h.outcome(b, nil)
	h.settle(nil, sums)
}

// settle notes the letters that are done with, and counts them.
func (h *handOver) settle(book *letterBook, sums *admin.ReplaySums) {
	for i, fate := range h.fates {
		switch fate {
		case event.Keep, event.Duplicate:
			sums.Replayed++
		case event.Filtered:
			sums.Filtered++
		case event.DeadLettered:
			sums.Failed++
		default: // refused: it is a letter as before
			continue
		}
		sums.Left--
		if book != nil {
			book.settle(&h.letters[i])
		}
	}
}
