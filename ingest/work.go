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
func takeWork(budget *budget.Budget, heavy *heavy) *work {
	w := works.Get().(*work)
	w.account = account{budget: budget, heavy: heavy}
	w.body.account, w.spare.account = &w.account, &w.account
	return w
}

func (w *work) give() {
	w.batch.Body, w.batch.Headers = nil, nil // they are the request's
	w.body.close()
	w.spare.close()
	w.batch.Reset() // which gives back what it has not paid with the account's close
	w.account.close()
	works.Put(w)
}

// decode makes the batch of a body that was received and has no coding any more. A trial keeps its turn for what it does next.
func (w *work) decode(r *request, p *plan) *event.Problem {
	b := &w.batch
	b.Headers, b.Body, p.account = r.fields, w.body.bytes(), &w.account
	no := decode(b, p)
	if !b.Trial {
		w.account.rest()
	}
	return no
}
