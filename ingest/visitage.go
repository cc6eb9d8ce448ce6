package ingest

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/session"
)

// live begins the age of a connection: at its end no further sessions are taken on it, and those that it has hear GOAWAY, the
// outcomes of what was taken, and FIN. Their clients come back on another connection, through a load balancer perhaps, and go
// on. over is called when the connection has ended.
func (v *visit) live() (over func()) {
	accepting, stop := context.WithCancel(v.of.accepting)
	v.accepting = accepting
	if v.of.age <= 0 {
		return stop
	}
	timer := time.AfterFunc(lifetime(v.of.age), stop)
	return func() { timer.Stop(); stop() }
}

// lifetime is how old a connection gets: an eighth less at most, so that those which were opened together, after a start, do
// not all come back together.
func lifetime(age time.Duration) time.Duration { return age - rand.N(age/8+1) }

// elsewhere is said to a session that has not begun when its connection takes none any more.
func elsewhere() *session.Error {
	return &session.Error{Retryable: true, Code: string(event.Draining), Detail: "nothing is taken on this connection any more; go on on another one"}
}
