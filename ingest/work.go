package ingest

import (
	"sync"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/budget"
)

// work is the memory of one request, reused by later ones.
type work struct {
	batch   event.Batch
	account account
	body    buffer
	spare   buffer // of a coded body while it is inflated
}

var works = sync.Pool{New: func() any { return new(work) }}

// takeWork returns empty memory that pays from budget.
func takeWork(budget *budget.Budget) *work {
	w := works.Get().(*work)
	w.account.budget = budget
	w.body.account, w.spare.account = &w.account, &w.account
	return w
}

// maxKept is how many events a batch may have room for when it is kept for reuse.
const maxKept = 16 << 10

func (w *work) give() {
	w.batch.Body, w.batch.Headers = nil, nil // they are the request's
	w.body.close()
	w.spare.close()
	if cap(w.batch.Events) <= maxKept {
		w.batch.Reset()
		works.Put(w)
	}
}
