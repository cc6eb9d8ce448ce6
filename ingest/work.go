package ingest

import (
	"sync"

	"github.com/headgate-io/headgate/event"
)

// work is the memory of one request, reused by later ones.
type work struct {
	batch event.Batch
	body  buffer
	spare buffer // of a coded body while it is inflated
}

var works = sync.Pool{New: func() any { return new(work) }}

// takeWork returns empty memory that pays from account.
func takeWork(account *account) *work {
	w := works.Get().(*work)
	w.body.account, w.spare.account = account, account
	return w
}

// maxKept is how many events a batch may have room for when it is kept for reuse.
const maxKept = 16 << 10

func (w *work) give() {
	w.batch.Body = nil // it is the body's
	w.body.close()
	w.spare.close()
	w.body.account, w.spare.account = nil, nil
	if cap(w.batch.Events) <= maxKept {
		w.batch.Reset()
		works.Put(w)
	}
}
