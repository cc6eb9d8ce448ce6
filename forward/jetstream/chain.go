package jetstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/forward"
)

// ChainError says that a lane's subject is not as this gateway left it: its messages were taken back, or somebody
// else writes under this gateway's id. The lane is stopped, because to go on would double or lose events.
type ChainError struct {
	Subject string
	After   uint64 // sequence of the last message known to be ours
	Found   uint64 // sequence of the message that should not be there
	Reason  string
}

// Error names subject and sequences.
func (e *ChainError) Error() string {
	return fmt.Sprintf("%s: %s (message %d, ours ends at %d)", e.Subject, e.Reason, e.Found, e.After)
}

// SealedError says that the lane's subject ends in a SEAL marker: a routing table of at least TableVersion must be
// in force before anything else is sent there.
type SealedError struct {
	Subject      string
	TableVersion uint64
}

// Error names subject and version.
func (e *SealedError) Error() string {
	return fmt.Sprintf("%s is sealed by table version %d", e.Subject, e.TableVersion)
}

var errGrown = errors.New("the lane has grown while it was read")

// settle finds out whether a run whose publish had no clear answer is stored. It reads the subject forward from the
// last message known to be ours, through the stream's leader: a replica may be behind. Not stored means that the
// lane's end is known again and the run may be published.
func (b *Backend) settle(ctx context.Context, l *lane, run *forward.Run) (stored bool, err error) {
	for range 2 {
		stored, err = b.settleNext(ctx, l, run)
		if !errors.Is(err, js.ErrMsgNotFound) {
			break
		}
		if err = b.settleEnd(ctx, l); !errors.Is(err, errGrown) {
			break
		}
	}
	if isGone(err) {
		if err = b.remake(ctx, l); err == nil {
			err = b.shrunk(ctx, l, Message{})
		}
	}
	if err != nil {
		return false, fmt.Errorf("find out what %s holds: %w", l.subject, err)
	}
	return stored, nil
}

// isGone tells that there may be no such stream any more; remake knows.
func isGone(err error) bool {
	return isCode(err, js.JSErrCodeStreamNotFound) || errors.Is(err, nats.ErrNoResponders)
}

// settleNext judges the message that follows the last one known to be ours.
func (b *Backend) settleNext(ctx context.Context, l *lane, run *forward.Run) (stored bool, err error) {
	m, err := b.next(ctx, l, l.seq+1)
	switch {
	case err != nil:
		return false, err
	case l.adopt(&m, run.TableVersion):
		return b.settleNext(ctx, l, run)
	case m.Marker && m.Claim == "":
		return false, &SealedError{Subject: l.subject, TableVersion: m.TableVersion}
	case m.ID == run.ID && m.Last == run.Last && bytes.Equal(m.Payload, run.Payload):
		l.confirm(m.Seq, m.Last)
		return true, nil
	}
	return false, b.stop(l, second(l, &m))
}

// settleEnd is for a lane that nothing was found behind: it notices when the last message itself has gone.
func (b *Backend) settleEnd(ctx context.Context, l *lane) error {
	m, err := b.lastOf(ctx, l)
	switch {
	case errors.Is(err, js.ErrMsgNotFound):
		return b.shrunk(ctx, l, Message{})
	case err != nil:
		return err
	case m.Seq > l.seq:
		return errGrown
	case m.Seq < l.seq:
		return b.shrunk(ctx, l, m)
	}
	l.unsure = false
	return nil
}

// shrunk goes on behind m, the last message of a lane that was longer, or starts the chain of one that is empty again. That is a
// *forward.LostError unless somebody has emptied the lane: then the stream knows sequences of its own behind it.
func (b *Backend) shrunk(ctx context.Context, l *lane, m Message) error {
	if l.seq == 0 {
		l.unsure = false
		return nil
	}
	if m.Seq == 0 && !b.cfg.Own {
		last, err := b.lastSequence(ctx, l.store)
		if err != nil {
			return err
		}
		if last >= l.seq {
			b.log.WarnContext(ctx, "lane is empty, its chain starts again", "subject", l.subject, "after", l.seq)
			l.seq, l.unsure = 0, false
			return nil
		}
	}
	if m.Seq != 0 && m.Last == 0 && !m.Marker {
		return b.stop(l, &ChainError{Subject: l.subject, After: l.seq, Found: m.Seq, Reason: "not a gateway's message"})
	}
	lost := &forward.LostError{Stored: m.Last, Confirmed: l.stored}
	l.seq, l.stored, l.unsure = m.Seq, m.Last, false
	if lost.Stored >= lost.Confirmed {
		return nil
	}
	return lost
}

// lastSequence returns the sequence that a JetStream stream gave last, also to a message that it has no more.
func (b *Backend) lastSequence(ctx context.Context, store string) (uint64, error) {
	stream, err := b.js.Stream(ctx, store)
	if err != nil {
		return 0, err
	}
	return stream.CachedInfo().State.LastSeq, nil
}

// Check returns a *forward.LostError when the lane ends earlier than it did, or than at the event numbered confirmed. It is
// called like Send.
func (b *Backend) Check(ctx context.Context, partition int32, confirmed uint64) error {
	if _, err := b.Resume(ctx, partition); err != nil {
		return err
	}
	l := b.lane(partition)
	if confirmed > l.stored { // by an earlier process
		return &forward.LostError{Stored: l.stored, Confirmed: confirmed}
	}
	if l.unsure {
		return nil // the next Send finds out
	}
	m, err := b.lastOf(ctx, l)
	switch {
	case isGone(err):
		if err := b.remake(ctx, l); err != nil {
			return sendError(err)
		}
		return sendError(b.shrunk(ctx, l, Message{}))
	case errors.Is(err, js.ErrMsgNotFound):
		return sendError(b.shrunk(ctx, l, Message{}))
	case err != nil:
		return sendError(err)
	case m.Seq < l.seq:
		return sendError(b.shrunk(ctx, l, m))
	}
	return nil
}

// remake makes the JetStream streams again of which somebody has removed one.
func (b *Backend) remake(ctx context.Context, l *lane) error {
	b.making.Lock()
	defer b.making.Unlock()
	if _, err := b.js.Stream(ctx, l.store); !errors.Is(err, js.ErrStreamNotFound) {
		return err
	}
	b.log.ErrorContext(ctx, "THE STREAM IS GONE from the backend: it is made again", "store", l.store)
	for k := range b.cfg.Streams {
		if err := ensure(ctx, b.js, b.cfg, k); err != nil {
			return fmt.Errorf("make %s again: %w", storeName(b.cfg.Stream, k), err)
		}
	}
	return nil
}

// stop ends all sending on the lane and returns why.
func (b *Backend) stop(l *lane, why *ChainError) error {
	l.stopped = why
	b.mu.Lock()
	b.alarm = errors.Join(b.alarm, why)
	b.mu.Unlock()
	b.log.Error("lane stopped", "partition", l.partition, "subject", l.subject, "error", why)
	return why
}

func (b *Backend) next(ctx context.Context, l *lane, from uint64) (Message, error) {
	return b.get(ctx, l.store, getRequest{Seq: from, Next: l.subject})
}

func (b *Backend) lastOf(ctx context.Context, l *lane) (Message, error) {
	return b.get(ctx, l.store, getRequest{Last: l.subject})
}

// getRequest asks a stream's leader for one message (NATS ADR-31: STREAM.MSG.GET).
type getRequest struct {
	Seq  uint64 `json:"seq,omitempty"` // with Next: the first sequence to look at
	Next string `json:"next_by_subj,omitempty"`
	Last string `json:"last_by_subj,omitempty"`
}

type getAnswer struct {
	Error   *js.APIError `json:"error"`
	Message *struct {
		Subject string    `json:"subject"`
		Seq     uint64    `json:"seq"`
		Header  []byte    `json:"hdrs"`
		Data    []byte    `json:"data"`
		Time    time.Time `json:"time"`
	} `json:"message"`
}

// get asks the leader; the client library would use a direct get, which any replica answers.
func (b *Backend) get(ctx context.Context, store string, req getRequest) (Message, error) {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
	defer cancel()
	body, err := json.Marshal(req)
	if err != nil {
		return Message{}, err
	}
	waiting, done := b.cfg.Link.bound(ctx)
	reply, err := b.nc.RequestWithContext(waiting, "$JS.API.STREAM.MSG.GET."+store, body)
	if err = done(err); err != nil {
		return Message{}, err
	}
	var answer getAnswer
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return Message{}, err
	}
	switch m := answer.Message; {
	case answer.Error != nil && answer.Error.ErrorCode == js.JSErrCodeMessageNotFound:
		return Message{}, js.ErrMsgNotFound
	case answer.Error != nil:
		return Message{}, answer.Error
	case m == nil:
		return Message{}, js.ErrInvalidJetStreamResponse
	default:
		header, err := headers(m.Header)
		if err != nil {
			return Message{}, err
		}
		return parse(m.Subject, header, m.Data).at(m.Seq, m.Time), nil
	}
}

func headers(raw []byte) (nats.Header, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	return nats.DecodeHeadersMsg(raw)
}
