package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
)

func TestJudge(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	status := func(status int, header ...string) *refusedError {
		e := &refusedError{status: status, header: http.Header{}}
		for _, v := range header {
			e.header.Set("Retry-After", v)
		}
		return e
	}
	described := func(status int, retryable bool, stored event.Stored) *refusedError {
		e := &refusedError{status: status, header: http.Header{}}
		e.doc.Code, e.doc.Retryable, e.doc.Stored = "c", retryable, stored
		return e
	}
	for name, c := range map[string]struct {
		err  error
		want outcome
	}{
		"nobody listens":     {&net.OpError{Op: "dial", Err: errors.New("refused")}, outcome{retry: true}},
		"broken connection":  {&net.OpError{Op: "read", Err: errors.New("reset")}, outcome{retry: true, unknown: true}},
		"EOF":                {errors.New("EOF"), outcome{retry: true, unknown: true}},
		"not a gateway":      {fmt.Errorf("x %w", errForeign), outcome{}},
		"404":                {status(404), outcome{}},
		"408":                {status(408), outcome{retry: true}},
		"425":                {status(425), outcome{retry: true}},
		"429 in seconds":     {status(429, "3"), outcome{retry: true, after: 3 * time.Second}},
		"429 at a time":      {status(429, now.Add(time.Minute).Format(http.TimeFormat)), outcome{retry: true, after: time.Minute}},
		"429 in the past":    {status(429, now.Add(-time.Minute).Format(http.TimeFormat)), outcome{retry: true}},
		"429 with nonsense":  {status(429, "soon"), outcome{retry: true}},
		"429 negative":       {status(429, "-5"), outcome{retry: true}},
		"500":                {status(500), outcome{retry: true, unknown: true}},
		"504":                {status(504), outcome{retry: true, unknown: true}},
		"503 nothing stored": {described(503, true, "no"), outcome{retry: true}},
		"503 unknown":        {described(503, true, "unknown"), outcome{retry: true, unknown: true}},
		"503 durable":        {described(503, false, "durable"), outcome{durable: true}},
		"400 incomplete":     {described(400, true, ""), outcome{retry: true}},
		"501 says no":        {described(501, false, ""), outcome{unknown: true}},
	} {
		if got := judge(c.err, now); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestO01O02BackoffHasFullJitterAfterTheCap: waits are spread over the whole range from nothing to the ceiling, also
// when the ceiling is at its cap.
func TestO01O02BackoffHasFullJitterAfterTheCap(t *testing.T) {
	for n, ceiling := range map[int]time.Duration{0: 100 * time.Millisecond, 1: 200 * time.Millisecond, 6: 6400 * time.Millisecond, 7: 10 * time.Second, 1000: 10 * time.Second} {
		for _, random := range []float64{0, 0.25, 0.999} {
			want := time.Duration(random * float64(ceiling))
			if got := backoff(n, outcome{}, random); got != want {
				t.Errorf("attempt %d, %v: %v, want %v", n, random, got, want)
			}
			if got := backoff(n, outcome{after: time.Second}, random); got != want+time.Second {
				t.Errorf("attempt %d, %v: %v is not behind Retry-After", n, random, got)
			}
		}
	}
}
