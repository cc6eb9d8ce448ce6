package ingest

import (
	"math/rand/v2"
	"net/netip"
	"strconv"
	"time"

	"github.com/headgate-io/headgate/event"
)

// Rates bound what each caller may send in a time. They are called concurrently and must neither block nor keep what they
// are given. A wait of 0 means that it may, and what was asked for is taken; otherwise nothing is, and it may after wait.
type Rates interface {
	// Begin is asked before a body of so many bytes is read (0: not known), and refuses also who could not send one event.
	Begin(who Caller, bytes int64, now time.Time) (wait time.Duration)
	// Take is asked before the events of a body are stored. The bytes are those that Begin did not know of.
	Take(who Caller, events int, bytes int64, now time.Time) (wait time.Duration)
}

// Caller is who sends: the one that was authenticated, or else an address.
type Caller struct {
	ID   []byte // empty: nobody was
	Addr netip.Addr
}

// begin asks the rates before the body. With a token that is when the header is there; an address is known only when the
// request is handled. A header that is examined twice, because what was found got lost, is counted twice.
func (c *core) begin(p *plan, r *request) *event.Problem {
	if c.rates == nil || p.begun || len(p.caller) == 0 && !r.addr.IsValid() {
		return nil
	}
	p.begun = true
	return overRate(c.rates.Begin(Caller{p.caller, r.addr}, max(0, r.length), time.Now()))
}

// count asks the rates when it is known what has come: bytes where they were not announced, or events.
func (c *core) count(p *plan, r *request, events int, bytes int64) *event.Problem {
	if c.rates == nil || events == 0 && bytes == 0 {
		return nil
	}
	return overRate(c.rates.Take(Caller{p.caller, r.addr}, events, bytes, time.Now()))
}

func overRate(wait time.Duration) *event.Problem {
	if wait == 0 {
		return nil
	}
	problem := event.Problemf(event.CallerRate, "you send more than your rate allows; nothing of this request is stored, send it again when Retry-After is over")
	problem.RetryAfter = wait
	return problem
}

// usualRetry bounds the seconds after which to come back where nothing better is known.
const usualRetry = 5

// retryAfter is the value of Retry-After. Clients that were refused in the same moment must not all come back in the
// same moment.
func retryAfter(wait time.Duration) string {
	if wait == 0 {
		return strconv.Itoa(1 + rand.IntN(usualRetry))
	}
	seconds := int((wait + time.Second - 1) / time.Second)
	return strconv.Itoa(seconds + rand.IntN(2+seconds/4))
}
