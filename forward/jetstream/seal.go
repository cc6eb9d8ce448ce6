package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/forward"
)

// markerSeal is the value of headerMarker on a SEAL marker.
const markerSeal = "seal"

// Seal writes a SEAL marker behind the lane's last message, under the same check as a run, unless it is there. See
// forward.LaneSealer.
func (b *Backend) Seal(ctx context.Context, partition int32, tableVersion uint64) (last uint64, err error) {
	l := b.lane(partition)
	if _, err := b.Resume(ctx, partition); err != nil {
		return 0, err
	}
	if err := b.claimFull(ctx, l); err != nil {
		return 0, sendError(err)
	}
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
	defer cancel()
	if l.unsure {
		if err := b.settleMarker(ctx, l); err != nil {
			return 0, sendError(err)
		}
	}
	if l.sealed == tableVersion {
		return l.stored, nil
	}
	l.sealing = max(l.sealing, tableVersion)
	m := marker(l, markerSeal)
	m.Header.Set(forward.HeaderTableVersion, strconv.FormatUint(tableVersion, 10))
	ack, err := b.js.PublishMsg(ctx, m, js.WithRetryAttempts(0))
	if err == nil {
		l.seq, l.sealed = ack.Sequence, tableVersion
		return l.stored, nil
	}
	l.unsure = l.unsure || !definite(err)
	return 0, sendError(err)
}

// marker makes a message without events: it has the numbers of the run before it, so that a lane that ends in it goes
// on where its events end, and never expires. A lane that may have lost its end goes on above that, also when what it has lost
// is not to be seen behind the marker any more.
func marker(l *lane, kind string) *nats.Msg {
	header := nats.Header{
		js.ExpectedLastSubjSeqHeader: {strconv.FormatUint(l.seq, 10)},
		js.MsgTTLHeader:              {"never"},
		headerMarker:                 {kind},
		forward.HeaderLast:           {strconv.FormatUint(l.stored, 10)},
	}
	if l.last > l.stored {
		header.Set(headerAbove, strconv.FormatUint(l.last, 10))
	}
	return &nats.Msg{Subject: l.subject, Header: header}
}

// settleMarker finds out whether a marker whose publish had no answer is stored.
func (b *Backend) settleMarker(ctx context.Context, l *lane) error {
	m, err := b.next(ctx, l, l.seq+1)
	switch {
	case errors.Is(err, js.ErrMsgNotFound):
		if err = b.settleEnd(ctx, l); errors.Is(err, errGrown) {
			return fmt.Errorf("find out what %s holds: %w", l.subject, err)
		}
		return err
	case err != nil:
		return fmt.Errorf("find out what %s holds: %w", l.subject, err)
	case !l.adopt(&m, 0):
		return b.stop(l, second(l, &m))
	}
	return nil
}

// adopt goes on behind a marker that this process has sent, or an earlier one whose message came late: then what is sent now was
// routed by a table as new as the marker's, inForce. It reports false for any other message.
func (l *lane) adopt(m *Message, inForce uint64) bool {
	if !m.Marker || m.TableVersion == 0 || m.TableVersion > max(l.sealing, inForce) {
		return false
	}
	l.seq, l.sealed, l.unsure = m.Seq, m.TableVersion, false
	return true
}
