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
	if err != nil {
		return false, fmt.Errorf("find out what %s holds: %w", l.subject, err)
	}
	return stored, nil
}

// settleNext judges the message that follows the last one known to be ours.
func (b *Backend) settleNext(ctx context.Context, l *lane, run *forward.Run) (stored bool, err error) {
	m, err := b.next(ctx, l, l.seq+1)
	switch {
	case err != nil:
		return false, err
	case m.Marker:
		return false, &SealedError{Subject: l.subject, TableVersion: m.TableVersion}
	case m.ID == run.ID && m.Last == run.Last && bytes.Equal(m.Payload, run.Payload):
		l.confirm(m.Seq, m.Last)
		return true, nil
	}
	return false, b.stop(l, &ChainError{Subject: l.subject, After: l.seq, Found: m.Seq, Reason: "a second writer"})
}

// settleEnd is for a lane that nothing was found behind: it notices when the last message itself has gone. An empty
// lane starts its chain again (the numbers go on). A lane that ends earlier is a stream restored from an older
// state, which is not for us to judge.
func (b *Backend) settleEnd(ctx context.Context, l *lane) error {
	m, err := b.lastOf(ctx, l)
	switch {
	case errors.Is(err, js.ErrMsgNotFound):
		if l.seq != 0 {
			b.log.WarnContext(ctx, "lane is empty, its chain starts again", "subject", l.subject, "after", l.seq)
		}
		l.seq, l.unsure = 0, false
		return nil
	case err != nil:
		return err
	case m.Seq > l.seq:
		return errGrown
	case m.Seq < l.seq:
		return b.stop(l, &ChainError{Subject: l.subject, After: l.seq, Found: m.Seq, Reason: "the stream ends earlier"})
	}
	l.unsure = false
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
