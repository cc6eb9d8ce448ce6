package admin

import (
	"context"
	"net/http"

	"github.com/headgate-io/headgate/event"
)

// Purger removes what a stream's backend holds. It may be called concurrently, blocks until it is done or ctx ends, and
// its errors are *event.Problem: unknown_stream, bad_stream_name, bad_parameter, not_readable, backend_unavailable.
type Purger interface {
	// Purge returns how many runs have gone. The last run of each lane always stays.
	Purge(ctx context.Context, stream string, order PurgeOrder) (runs uint64, err error)
	// Resume lets partitions set aside again what the backend refuses, and returns how many did not.
	Resume(stream string) (partitions int, err error)
}

// PurgeOrder says what goes; exactly one is set.
type PurgeOrder struct {
	OlderThan string  `json:"older_than"` // an age, as in 7d or 12h
	Keep      *uint64 `json:"keep"`       // all but the newest so many runs
}

// orderBytes bounds the body of a purge.
const orderBytes = 4 << 10

func (s *Server) purge(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r, "application/json", orderBytes)
	if err != nil {
		return err
	}
	var order PurgeOrder
	if err := decodeStrict(body, &order); err != nil {
		return err
	}
	if (order.OlderThan == "") == (order.Keep == nil) {
		return event.Problemf(event.BadParameter, `say what goes: {"older_than": "7d"} or {"keep": 1000}`)
	}
	runs, err := s.deps.Purger.Purge(r.Context(), r.PathValue("stream"), order)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, map[string]uint64{"purged_runs": runs})
}

func (s *Server) resume(w http.ResponseWriter, r *http.Request) error {
	n, err := s.deps.Purger.Resume(r.PathValue("stream"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, map[string]int{"resumed_partitions": n})
}
