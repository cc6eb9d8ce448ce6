package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/headgate-io/headgate/event"
)

// feed is an answer that is written while events are read. Its header goes out with the first visit, so that
// problems found before have their own status.
type feed struct {
	w         http.ResponseWriter
	control   *http.ResponseController
	mediaType string
	stream    string
	follow    bool
	ends      bool   // by itself, when all was read
	rowBytes  int    // larger events are only named
	left      uint64 // events that may still be sent
	started   bool
	buf       []byte
}

// errEnough ends a read whose limit is reached.
var errEnough = errors.New("enough events")

const (
	feedTimeout = 30 * time.Second // a client that reads nothing for so long is let go
	feedBuffer  = 64 << 10
)

func newFeed(w http.ResponseWriter, q Query, rowBytes int, limit uint64) *feed {
	if limit == 0 {
		limit = ^uint64(0)
	}
	return &feed{w: w, control: http.NewResponseController(w), mediaType: rowsType,
		stream: q.Stream, follow: q.Follow, ends: !q.Follow || q.Idle > 0, rowBytes: rowBytes, left: limit}
}

// readAs has read fill the answer, when there are not too many who read.
func (s *Server) readAs(r *http.Request, f *feed, read func(context.Context, *feed) error) error {
	ctx, end, err := s.reading(r)
	if err != nil {
		return err
	}
	defer end()
	err = read(ctx, f)
	switch {
	case errors.Is(err, errEnough) || ctx.Err() == nil:
	case f.ends && s.stopping.Err() != nil: // nobody knows how much is missing
		err = event.Problemf(event.Draining, "the gateway is stopping, and there may be more; read again when it is back")
	default:
		err = nil // the client left or we stop: what was read is whole lines
	}
	_, told := errors.AsType[*event.Problem](err)
	if f.started && err != nil && !told && !errors.Is(err, errEnough) { // what has not started asProblem says
		s.deps.Log.Error("reading broke off", "path", r.URL.Path, "error", err)
	}
	return f.finish(err)
}

// reading takes one of the places of those who read, until end. Its context ends with the request, and when the server stops.
func (s *Server) reading(r *http.Request) (ctx context.Context, end func(), err error) {
	select {
	case s.readers <- struct{}{}:
	default:
		return nil, nil, event.Problemf(event.Overloaded, "%d clients are reading already; try again", cap(s.readers))
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(s.stopping, cancel)
	return ctx, func() { stop(); cancel(); <-s.readers }, nil
}

// rows sends a line per row.
func (f *feed) rows(rows []Row) error {
	return f.lines(len(rows), func(i int) { f.buf = appendRow(f.buf, f.stream, &rows[i], f.rowBytes) })
}

// letters sends a line per letter.
func (f *feed) letters(list []Letter) error {
	return f.lines(len(list), func(i int) { f.buf = appendLetter(f.buf, f.stream, &list[i], f.rowBytes) })
}

func (f *feed) lines(n int, add func(i int)) error {
	if err := f.start(); err != nil {
		return err
	}
	for i := range n {
		if f.left == 0 {
			break
		}
		f.left--
		add(i)
		if len(f.buf) >= feedBuffer {
			if err := f.flush(); err != nil {
				return err
			}
		}
	}
	return f.rest()
}

// run sends a run as a whole, so that the answer may have more events than its limit.
func (f *feed) run(r StoredRun) error {
	if err := f.start(); err != nil {
		return err
	}
	f.buf = append(f.buf, r.Payload...)
	f.left -= min(f.left, uint64(r.Events))
	return f.rest()
}

// rest sends what is buffered when it is much, or when someone waits for it.
func (f *feed) rest() error {
	if f.follow || f.left == 0 || len(f.buf) >= feedBuffer {
		if err := f.flush(); err != nil {
			return err
		}
	}
	if f.left == 0 {
		return errEnough
	}
	return nil
}

// start sends the header, once.
func (f *feed) start() error {
	if f.started {
		return nil
	}
	f.started = true
	// The server's read timeout would end the request's context, and with it a read that follows.
	_ = f.control.SetReadDeadline(time.Time{})
	f.w.Header().Set("Content-Type", f.mediaType)
	f.w.WriteHeader(http.StatusOK)
	return f.flush()
}

func (f *feed) flush() error {
	_ = f.control.SetWriteDeadline(time.Now().Add(feedTimeout))
	if _, err := f.w.Write(f.buf); err != nil {
		return err
	}
	f.buf = f.buf[:0]
	return f.control.Flush()
}

// finish ends the answer. What broke off in the middle must not look complete: lines get a last one that says
// so, and frames end with a broken connection.
func (f *feed) finish(err error) error {
	if err != nil && !errors.Is(err, errEnough) {
		if !f.started {
			return err
		}
		if f.mediaType != rowsType {
			panic(http.ErrAbortHandler)
		}
		f.buf = appendBroken(f.buf, err)
	}
	if err := f.start(); err != nil {
		return nil
	}
	_ = f.flush() // the client is gone, or not: nothing is left to do
	return nil
}

// appendBroken appends the line that says why the answer ends early.
func appendBroken(dst []byte, err error) []byte {
	code, detail := event.Internal, "reading events failed; the gateway's log may say more"
	if p := (*event.Problem)(nil); errors.As(err, &p) {
		code, detail = p.Code, p.Detail
	}
	line, _ := json.Marshal(map[string]string{"error": string(code), "detail": detail})
	return append(append(dst, line...), '\n')
}
