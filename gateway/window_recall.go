package gateway

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/headgate-io/headgate/forward/jetstream"
	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/internal/compress"
	"github.com/headgate-io/headgate/internal/window"
	"github.com/headgate-io/headgate/sdk/wire"
)

// What is read at a start behind an unclean stop. The log lacks ids of events that were stored right before it: their request was
// not answered, or a power cut took the end of the log. Likewise at the first start behind a version whose log can't be used: then it is
// those of the whole window.
const (
	// recallSpan is how much longer at most the events of one request take to be safe, the last behind the first.
	recallSpan = time.Minute
	// recallMost bounds what a log that is far behind makes us read, before the newest frame.
	recallMost = 10 * time.Minute
	// recallRuns is the bytes that are read of each JetStream stream, and recallBlocks those of metadata in the spool.
	recallRuns, recallBlocks = 64 << 20, 32 << 20
	// recallFrames is the most that are looked at in the spool: what was not answered lies in far fewer.
	recallFrames = 100_000
	// recallQuiet is how long the backend of a stream may give nothing, and recallTime what it has for all: one that is merely slow is
	// heard out, as what it gives last is what is missing.
	recallQuiet, recallTime = 3 * time.Second, 30 * time.Second
	// glance is what is read of a frame at first: mostly that has all of its metadata.
	glance = 4 << 10
)

// noteStart finds out whether ids have to be recalled.
func (g *Gateway) noteStart() {
	var err error
	if g.unclean, err = g.folder.Begin(); err != nil {
		g.log.Warn("it can't be noted that the gateway runs: after a crash, what was stored and not answered is stored again when it is sent again", "error", err)
	}
}

// noteStop notes a stop after which the logs have all ids.
func (g *Gateway) noteStop() {
	whole := g.failures.err() == nil
	g.broken.Range(func(any, any) bool { whole = false; return false })
	for _, s := range *g.streams.Load() {
		whole = whole && (s.idLog == nil || s.idLog.Stats().Failed == 0)
	}
	if whole {
		_ = g.folder.End() // else ids are looked for that are there
	}
}

// recall makes ids known whose events are stored and that the log of ids lacks. The spool and the end of the lanes in the
// backend are read for them; nothing runs yet. What can't be read is not known, and the log says so.
func (g *Gateway) recall(ctx context.Context, s *stream) {
	if s.deadLetter == nil || s.current.Load().config.ID.None {
		return
	}
	began := time.Now()
	r := newRecollection(s, g.owners, began)
	if s.spool != nil {
		r.readSpool(s.spool)
	}
	if b := s.delivery.bus; b != nil {
		err := b.err()
		if err == nil {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, recallTime)
			defer cancel()
			quiet := time.AfterFunc(recallQuiet, cancel)
			defer quiet.Stop()
			since := func(newest time.Time) time.Time { quiet.Reset(recallQuiet); return r.since(newest) } // the ends of lanes came
			q := jetstream.Recent{Stream: s.name, Gateway: g.folder.ID, Since: since, Bytes: recallRuns}
			err = b.reader.Recent(ctx, q, func(m jetstream.Message) error { r.run(&m); quiet.Reset(recallQuiet); return nil })
		}
		if err != nil {
			g.log.Warn("the end of a stream can't be read: what was stored there, and whose ids the log lacks, is stored again when it is sent again", "stream", s.name, "error", err)
		}
	}
	if n := r.finish(); n > 0 {
		g.log.Info("ids of stored events that the log lacks are known again", "stream", s.name, "ids", n,
			"after", time.Since(began).Round(time.Millisecond).String())
	}
}

// recollection collects the ids of stored events that a stream's window lacks. Of a full window it collects those that it has, too:
// they tell the ids that are missing from those that had to make room for them.
type recollection struct {
	s      *stream
	owners window.Secret
	now    time.Time
	logged time.Time // when the newest id was finished that the log has
	most   int       // ids
	full   bool      // the window was when this began
	meta   wire.Meta
	found  []recalled
}

type recalled struct {
	id    window.ID
	owner window.Owner
	at    int64 // when its frame was stored: nanoseconds since 1970
	known bool
}

func newRecollection(s *stream, owners window.Secret, now time.Time) *recollection {
	w := s.current.Load().config.ID.Window
	logged := s.ids.Newest()
	if s.ids.Unread() {
		logged = now.Add(-time.Duration(w.Age))
	}
	return &recollection{s: s, owners: owners, now: now, logged: logged, most: w.IDs, full: s.ids.State(now).Finished >= w.IDs}
}

// since is from when on frames have to be read, as the newest was stored then.
func (r *recollection) since(newest time.Time) time.Time {
	from := newest
	if !r.logged.IsZero() && r.logged.Before(from) {
		from = r.logged
	}
	if from = from.Add(-recallSpan); newest.Sub(from) > recallMost {
		return newest.Add(-recallMost)
	}
	return from
}

// readSpool reads the metadata of what the spool has.
func (r *recollection) readSpool(from *spool.Spool) {
	left := recallBlocks
	from.Recent(r.since(from.Newest()), recallFrames, func(f *spool.Glance) (more bool) {
		head, err := f.Head(glance)
		block, need := wire.Block(head, f.Codec)
		for err == nil && block == nil && need > len(head) {
			before := len(head)
			if head, err = f.Head(need); len(head) == before {
				break // it is cut off
			}
			block, need = wire.Block(head, f.Codec)
		}
		if err == nil && block != nil {
			r.block(block, f.At, f.Sound)
			left -= len(block)
		}
		return left > 0 && len(r.found) < r.most
	})
}

// run reads the metadata of a run of the backend.
func (r *recollection) run(m *jetstream.Message) {
	codec, err := compress.ByEncoding(m.ContentEncoding)
	if err != nil {
		return
	}
	whole := func() bool { return true } // the backend has checked it
	for rest := m.Payload; len(rest) > 0; {
		var block []byte
		if block, _, rest, err = wire.SplitFrame(rest, codec.Name()); err != nil || block == nil {
			return
		}
		r.block(block, m.Time, whole)
	}
}

// block adds the ids of a frame. When there are some that are not known, the frame must be sound: an id without its event
// would be a lost event. Nobody knows of which address a request without a caller was: all of those have one share.
func (r *recollection) block(block []byte, at time.Time, sound func() bool) {
	m := &r.meta
	if err := wire.ParseMeta(block, m); err != nil || len(m.IDs) == 0 {
		return
	}
	before, next, lacking := len(r.found), 0, false
	for i := range m.Requests {
		q := &m.Requests[i]
		producer := r.s.secret.Namer(q.Caller, q.Source)
		owner := r.owners.Owner(q.Caller, len(q.Caller) > 0)
		for end := next + int(q.Count); next < end; next++ {
			if len(m.IDs[next]) == 0 {
				continue
			}
			namer := producer
			if len(m.Attrs) > 0 {
				if source, ok := sourceAttr(m.Attrs[next]); ok {
					namer = r.s.secret.Namer(q.Caller, source)
				}
			}
			id := namer.Of(m.IDs[next])
			known := r.s.ids.Known(id, r.now)
			if !known || r.full {
				r.found = append(r.found, recalled{id, owner, at.UnixNano(), known})
			}
			lacking = lacking || !known
		}
	}
	if lacking && !sound() {
		r.found = r.found[:before]
	}
	if len(r.found) >= 2*r.most {
		r.trim()
	}
}

// trim leaves the newest of what was found, the oldest in front: as many as the window has room for.
func (r *recollection) trim() {
	slices.SortStableFunc(r.found, func(a, b recalled) int { return cmp.Compare(a.at, b.at) })
	r.found = slices.Delete(r.found, 0, max(0, len(r.found)-r.most))
}

// sourceAttr is sourceOf of a stored event.
func sourceAttr(attrs []wire.Attr) (source []byte, ok bool) {
	for i := range attrs {
		if string(attrs[i].Name) == "source" {
			return attrs[i].Value, true
		}
	}
	return nil, false
}

// finish puts what was found into the window, the oldest first, and returns how many ids were not there. What a full window lacks
// that is older than all that it has had to make room.
func (r *recollection) finish() (n int) {
	r.trim()
	found := r.found
	if oldest := slices.IndexFunc(found, func(f recalled) bool { return f.known }); oldest > 0 {
		found = found[oldest:]
	}
	for _, f := range found {
		if r.s.ids.Recall(f.owner, f.id, time.Unix(0, f.at), r.now) {
			n++
		}
	}
	r.s.ids.Flush()
	return n
}
