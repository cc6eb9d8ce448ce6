package admin

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/event"
)

// Letters is the dead letters of streams. Its methods may be called concurrently. They block until they are done, ctx ends,
// or the function they were given returns an error, which they return. Errors are *event.Problem: unknown_stream,
// bad_stream_name, replay_running, bad_parameter, backend_unavailable and those of taking events. stream is the stream whose
// dead letter is meant. What the functions are given is lent.
type Letters interface {
	// ReadLetters gives letters as ReadRows gives events: first nothing, as soon as the reading stands at its first one.
	ReadLetters(ctx context.Context, q LetterQuery, visit func([]Letter) error) error
	// Replay hands letters to their stream again, tells now and then how far it is, and returns what has become of them. After
	// an error the sums are those of what was done before.
	Replay(ctx context.Context, stream string, order LetterOrder, tell func(ReplaySums) error) (ReplaySums, error)
	// PurgeLetters settles letters without handing them over.
	PurgeLetters(ctx context.Context, stream string, order LetterOrder) (PurgeSums, error)
}

// Letter is an event that was set aside.
type Letter struct {
	Row
	Stored  int64 // when, in unix nanoseconds
	Settled bool  // it was replayed or purged
}

// Name is how the letter is called: by the gateway that wrote it and its number there.
func (l *Letter) Name() string { return l.Gateway + "." + strconv.FormatUint(l.Number, 10) }

// LetterQuery says which letters to read.
type LetterQuery struct {
	Query   // Stream is the one whose dead letter is meant
	Filter  LetterFilter
	Settled bool // those too
}

// LetterOrder says which open letters something is done to.
type LetterOrder struct {
	Filter LetterFilter
	Limit  uint64 // the first so many; 0: all
	Rate   int    // events a second of a replay; 0: usual
	DryRun bool   // only say what would be
}

// LetterFilter says which letters are meant. The zero value takes all.
type LetterFilter struct {
	Letters      []string // names, or numbers where one gateway wrote them all; empty: any
	From, To     uint64   // numbers; 0: no bound
	Code         string   // exactly
	Plugin       string   // exactly
	Reason       string   // is a part of the reason
	Since, Until time.Time
}

// Takes reports whether a letter is meant.
func (f *LetterFilter) Takes(l *Letter) bool {
	switch {
	case l.Number < f.From, f.To > 0 && l.Number > f.To,
		!f.Since.IsZero() && l.Stored < f.Since.UnixNano(), !f.Until.IsZero() && l.Stored >= f.Until.UnixNano():
		return false
	case f.Code != "" && l.Attribute("code") != f.Code, f.Plugin != "" && l.Attribute("plugin") != f.Plugin:
		return false
	case f.Reason != "" && !strings.Contains(l.Attribute("reason"), f.Reason):
		return false
	}
	return len(f.Letters) == 0 || slices.ContainsFunc(f.Letters, l.isCalled)
}

// isEmpty tells that the filter takes all.
func (f *LetterFilter) isEmpty() bool {
	return len(f.Letters) == 0 && f.From == 0 && f.To == 0 && f.Code == "" && f.Plugin == "" && f.Reason == "" && f.Since.IsZero() && f.Until.IsZero()
}

func (l *Letter) isCalled(name string) bool {
	gateway, number, whole := strings.Cut(name, ".")
	if !whole {
		number = name
	}
	n, err := strconv.ParseUint(number, 10, 64)
	return err == nil && n == l.Number && (!whole || gateway == l.Gateway)
}

// Attribute returns the value of an attribute, empty for none.
func (l *Letter) Attribute(name string) string {
	for _, a := range l.Attrs {
		if string(a.Name) == name {
			return string(a.Value)
		}
	}
	return ""
}

// deadLetter streams letters as lines of JSON, or the stored runs when the client accepts application/octet-stream.
func (s *Server) deadLetter(w http.ResponseWriter, r *http.Request) error {
	if strings.Contains(r.Header.Get("Accept"), runsType) {
		return s.read(w, r, r.PathValue("stream")+event.DeadLetterSuffix)
	}
	q, limit, err := parseLetterQuery(r.PathValue("stream"), r.URL.Query())
	if err != nil {
		return err
	}
	f := newFeed(w, q.Query, s.cfg.RowBytes, limit)
	f.stream += event.DeadLetterSuffix
	return s.readAs(r, f, func(ctx context.Context, f *feed) error {
		return s.deps.Letters.ReadLetters(ctx, q, f.letters)
	})
}

// showLetter answers one letter, settled or not.
func (s *Server) showLetter(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("letter")
	q := LetterQuery{Query: Query{Stream: r.PathValue("stream"), Partition: AllPartitions}, Settled: true, Filter: LetterFilter{Letters: []string{name}}}
	var line []byte
	err := s.deps.Letters.ReadLetters(r.Context(), q, func(list []Letter) error {
		if len(list) == 0 {
			return nil
		}
		line = appendLetter(nil, q.Stream+event.DeadLetterSuffix, &list[0], s.cfg.RowBytes)
		return errEnough
	})
	if err != nil && err != errEnough {
		return err
	}
	if line == nil {
		return event.Problemf(event.UnknownLetter, "stream %s has no letter %q; `headgate deadletter list` shows what there is", q.Stream, name)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(line)
	return nil
}

// appendLetter appends l as a line of JSON: that of its row, with its name and state.
func appendLetter(dst []byte, stream string, l *Letter, limit int) []byte {
	dst = appendRow(dst, stream, &l.Row, limit)
	dst = dst[:len(dst)-len("}\n")]
	dst = append(append(append(dst, `,"letter":"`...), l.Name()...), '"')
	dst = time.Unix(0, l.Stored).UTC().AppendFormat(append(dst, `,"stored":"`...), time.RFC3339Nano)
	dst = append(dst, '"')
	if l.Settled {
		dst = append(dst, `,"settled":true`...)
	}
	return append(dst, "}\n"...)
}
