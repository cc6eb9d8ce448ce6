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
	// Take is asked when it is known what was sent, before anything is stored.
	Take(who Caller, what Load, now time.Time) (wait time.Duration)
}

// Load is what a request brings.
type Load struct {
	Events int
	Bytes  int64 // those that Begin did not know of
	Again  int64 // those that it did, and that are spent once more when the request is repeated
}

// Caller is who sends: the one that was authenticated, or else an address.
type Caller struct {
	ID   []byte // empty: nobody was
	Addr netip.Addr
}

// cheapBody is up to what length a body is rather read than a connection closed because of it.
const cheapBody = 128 << 10

// begin asks the rates before the body, once a request: when its header is there, or where that is early enough, because
// the client sends a small body anyway, when it is handled. Only then the address of a client is known. A header that is
// examined twice, because what was found got lost, may be counted twice.
func (c *core) begin(p *plan, r *request) *event.Problem {
	if c.rates == nil || p.begun {
		return nil
	}
	who := r.caller(p)
	if handled := who.Addr.IsValid(); !handled && (len(who.ID) == 0 || r.length >= 0 && r.length <= cheapBody && value(r.fields, "expect") == nil) {
		return nil
	}
	p.begun = true
	return overRate(c.rates.Begin(who, max(0, r.length), time.Now()))
}

// caller is who sends, without an address while the request is not handled.
func (r *request) caller(p *plan) Caller {
	addr := r.addr
	if !addr.IsValid() && len(r.client) > 0 {
		addr, _ = netip.ParseAddr(string(r.client)) // no address: as one that is not known
	}
	return Caller{p.caller, addr}
}

// count asks the rates when it is known what has come: bytes where they were not announced, or events.
func (c *core) count(p *plan, r *request, what Load) *event.Problem {
	if c.rates == nil || what.Events == 0 && what.Bytes == 0 {
		return nil
	}
	return overRate(c.rates.Take(r.caller(p), what, time.Now()))
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
