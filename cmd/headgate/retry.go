package main

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/headgate-io/headgate/event"
)

// outcome is what one failed attempt means.
type outcome struct {
	retry   bool          // the same request can succeed later
	unknown bool          // it may have been stored
	durable bool          // it is stored, and only late
	after   time.Duration // not before
}

// judge decides from the error of one attempt.
func judge(err error, now time.Time) outcome {
	if errors.Is(err, errForeign) || errors.Is(err, errHandshake) {
		return outcome{}
	}
	refused, ok := errors.AsType[*refusedError](err)
	if !ok {
		op, isOp := errors.AsType[*net.OpError](err)
		_, unheard := errors.AsType[*quic.HandshakeTimeoutError](err)
		return outcome{retry: true, unknown: !unheard && !errors.Is(err, errUnreached) && (!isOp || op.Op != "dial")}
	}
	o := outcome{after: retryAfter(refused.header, now), durable: refused.doc.Stored == event.StoredDurable}
	described := refused.doc.Code != ""
	switch {
	case described && refused.doc.Retryable:
		o.retry = true
	case refused.status == http.StatusRequestTimeout, refused.status == http.StatusTooEarly,
		refused.status == http.StatusTooManyRequests, refused.status >= 500:
		o.retry = !described
	}
	o.unknown = refused.doc.Stored == event.StoredUnknown || refused.status >= 500 && refused.doc.Stored == ""
	return o
}

// retryAfter reads the header in both its forms, seconds and a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

const (
	backoffFirst = 100 * time.Millisecond
	backoffCap   = 10 * time.Second
)

// backoff returns how long to wait before attempt n (0 is the first repetition): exponential with full jitter after
// the cap, on top of what the gateway asked for, so that many clients do not come back together.
func backoff(n int, o outcome, random float64) time.Duration {
	ceiling := backoffCap
	if n < 16 {
		ceiling = min(backoffCap, backoffFirst<<n)
	}
	return o.after + time.Duration(random*float64(ceiling))
}
