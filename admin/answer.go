package admin

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/problem"
	"github.com/headgate-io/headgate/internal/requestid"
)

// reply writes v as JSON.
func reply(w http.ResponseWriter, status int, v any) error {
	doc, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(doc, '\n')) // the client is gone, or not: nothing is left to do
	return nil
}

// fail answers err.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	id := requestid.New(time.Now())
	answer := refusal{Document: problem.Describe(s.asProblem(r, id, err), id)}
	if refused, ok := errors.AsType[*refusedError](err); ok {
		answer.Checks = refused.checks
	}
	doc, err := json.Marshal(answer)
	if err != nil {
		panic("BUG: admin: " + err.Error())
	}
	if answer.Status == http.StatusServiceUnavailable || answer.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(1+rand.IntN(5)))
	}
	if answer.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="headgate"`)
	}
	w.Header().Set("Content-Type", problem.MediaType)
	w.Header().Set("X-Request-Id", id)
	w.WriteHeader(answer.Status)
	_, _ = w.Write(append(doc, '\n'))
}

// refusal is the answer to what failed.
type refusal struct {
	problem.Document
	Checks []Check `json:"checks,omitempty"` // of an upload
}

// asProblem returns the problem that err is; what is not for the client to see goes to the log under the request's id.
func (s *Server) asProblem(r *http.Request, id string, err error) *event.Problem {
	var p *event.Problem
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &large):
		p = event.Problemf(event.BodyTooLarge, "the body may have %d bytes", large.Limit)
		p.Scope, p.Limit, p.Observed = "body", large.Limit, max(r.ContentLength, large.Limit+1)
		return p
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return event.Problemf(event.Overloaded, "the request was given up before it was done; try again")
	}
	s.deps.Log.Error("admin request failed", "method", r.Method, "path", r.URL.Path, "request_id", id, "error", err)
	return event.Problemf(event.Internal, "the gateway's log has the reason under this request_id")
}

// recovering answers a panic with 500 and keeps the server running.
func (s *Server) recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				panic(v)
			default:
				s.deps.Log.Error("admin request panicked", "method", r.Method, "path", r.URL.Path, "panic", v)
				if w.Header().Get("Content-Type") != "" { // the answer has begun: break it off
					panic(http.ErrAbortHandler)
				}
				s.fail(w, r, event.Problemf(event.Internal, "the gateway's log has the reason"))
			}
		}()
		next.ServeHTTP(w, r)
	})
}
