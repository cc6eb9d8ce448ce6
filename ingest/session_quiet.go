package ingest

import (
	"context"
	"sync"
	"time"
)

// unheard is a connection on which nobody waits for datagrams, since none should come, nor for a stream beside the first.
type unheard interface {
	// ignore deals with those that have come all the same. It waits for nothing.
	ignore()
}

// quiet looks for the datagrams of connections that should send none: quic-go holds up to 128 of a connection until they are read, and a
// goroutine that waited for them on each would be a tenth of what it holds. So would be one that waited for the second stream of a
// connection, of which most have none: where that comes later than the HELLO of the first, it begins that much later. It looks only while
// there are such connections.
type quiet struct {
	mu   sync.Mutex
	all  map[unheard]struct{}
	look *time.Timer // nil: none was ever there
}

// lookAgain is how often: a client fills a connection's 128 within it at most. For 20,000 connections that is a hundredth of a core.
const lookAgain = 200 * time.Millisecond

func (q *quiet) join(u unheard) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.all == nil {
		q.all = map[unheard]struct{}{}
	}
	if q.all[u] = struct{}{}; len(q.all) > 1 {
		return
	}
	if q.look == nil {
		q.look = time.AfterFunc(lookAgain, q.round)
	} else {
		q.look.Reset(lookAgain)
	}
}

// leave returns when u is not looked at any more.
func (q *quiet) leave(u unheard) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if delete(q.all, u); len(q.all) == 0 && q.look != nil {
		q.look.Stop()
	}
}

func (q *quiet) round() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for u := range q.all {
		u.ignore()
	}
	if len(q.all) > 0 {
		q.look.Reset(lookAgain)
	}
}

// glance is a context with which quic-go returns what is there and waits for nothing: it looks at Err first, then whether there is
// something, and then at Done.
type glance struct{ context.Context }

func (glance) Done() <-chan struct{} { return over }
func (glance) Err() error            { return nil }

var over = func() chan struct{} { c := make(chan struct{}); close(c); return c }() // read only

// receiver is a connection with datagrams.
type receiver interface {
	ReceiveDatagram(ctx context.Context) ([]byte, error)
}

// receiveNow returns a datagram that has come, nil when there is none.
func receiveNow(conn receiver) []byte {
	d, err := conn.ReceiveDatagram(glance{context.Background()})
	if err != nil {
		return nil
	}
	return d
}
