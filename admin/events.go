package admin

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/event"
)

// Events reads back what a stream's backend holds. Its methods may be called concurrently; they block until
// there is no more (without Follow), ctx ends, or visit returns an error, which they return. Errors are
// *event.Problem: unknown_stream, bad_stream_name, not_readable, backend_unavailable. visit is called by one
// goroutine and keeps nothing that it is given. It is called once with nothing as soon as the reading stands
// at its first event: all that is stored from then on will be seen.
//
// Events of one partition and gateway come in their order.
type Events interface {
	// ReadRows gives events, as many at a time as are at hand (usually those of a run).
	ReadRows(ctx context.Context, q Query, visit func(rows []Row) error) error
	// ReadRuns gives the frames as they are stored.
	ReadRuns(ctx context.Context, q Query, visit func(r StoredRun) error) error
}

// Query says which events to read.
type Query struct {
	Stream    string
	Partition int32  // AllPartitions for all
	Now       bool   // only what is stored from now on
	Number    uint64 // only events with at least this number in their lane; runs as a whole. 0 for all
	Follow    bool   // wait for more at the end

	// Idle ends a read that follows: when all that is stored was read, nothing new came for so long, and nothing that was taken is
	// still on its way. 0: never.
	Idle time.Duration
}

// AllPartitions as Query.Partition reads them all.
const AllPartitions = -1

// StoredRun is a run of frames as it is stored.
type StoredRun struct {
	Events  int
	Payload []byte
}

// tail's media types.
const (
	rowsType = "application/x-ndjson"
	runsType = "application/octet-stream"
)

// events streams rows as lines of JSON, or runs when the client accepts application/octet-stream.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	return s.read(w, r, r.PathValue("stream"))
}

func (s *Server) read(w http.ResponseWriter, r *http.Request, stream string) error {
	q, limit, err := parseQuery(stream, r.URL.Query())
	if err != nil {
		return err
	}
	return s.readAs(r, newFeed(w, q, s.cfg.RowBytes, limit), func(ctx context.Context, f *feed) error {
		if strings.Contains(r.Header.Get("Accept"), runsType) {
			f.mediaType = runsType
			return s.deps.Events.ReadRuns(ctx, q, f.run)
		}
		return s.deps.Events.ReadRows(ctx, q, f.rows)
	})
}

// parseQuery reads from, partition, limit, follow and idle; limit 0 is none.
func parseQuery(stream string, values url.Values) (q Query, limit uint64, err error) {
	q = Query{Stream: stream, Partition: AllPartitions}
	for name, list := range values {
		if ok := len(list) == 1 && parseParameter(&q, &limit, name, list[0]); !ok {
			return q, 0, event.Problemf(event.BadParameter,
				"%s=%s: give from=start|now|NUMBER, partition=N, limit=N, follow=true|false, idle=DURATION like 2s, each once", name, strings.Join(list, ","))
		}
	}
	return q, limit, nil
}

func parseParameter(q *Query, limit *uint64, name, value string) bool {
	var err error
	switch name {
	case "from":
		switch value {
		case "start":
		case "now":
			q.Now = true
		default:
			q.Number, err = strconv.ParseUint(value, 10, 64)
		}
	case "partition":
		var n uint64
		n, err = strconv.ParseUint(value, 10, 31)
		q.Partition = int32(n)
	case "limit":
		*limit, err = strconv.ParseUint(value, 10, 63)
		return err == nil && *limit > 0
	case "follow":
		q.Follow, err = strconv.ParseBool(value)
	case "idle":
		q.Idle, err = time.ParseDuration(value)
		return err == nil && q.Idle > 0
	default:
		return false
	}
	return err == nil
}
