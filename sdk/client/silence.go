package client

import (
	"context"
	"errors"
	"time"

	"github.com/quic-go/quic-go"
)

// How UDP that stops coming through is noticed, in less than 3 s in all. What is sent is acknowledged within 25 ms and a round
// trip (RFC 9000 section 13.2.1), so a connection of which that is not so for longer is in trouble. Whether that is a way that loses much, a
// gateway that is busy, or a wall, shows a second handshake.
const (
	lookEach = 100 * time.Millisecond
	silent   = 500 * time.Millisecond
)

// errBlocked ends a connection that is to be followed by HTTP.
var errBlocked = errors.New("nothing comes through over UDP any more")

// silence is what is seen of a connection that may have stopped coming through.
type silence struct {
	heard, sent uint64
	since       time.Time // when the first was sent that nothing was heard after; zero: nothing was

	// A gateway to which nothing comes through may be heard for long: it repeats what nobody acknowledges.
	wrote uint64    // frames
	told  roundTrip // the last that was measured
	asked time.Time // since when frames are written without one; zero: none are
}

// roundTrip is measured whenever something is acknowledged. No two are the same: they count nanoseconds.
type roundTrip struct{ last, smoothed time.Duration }

func measured(s *quic.ConnectionStats) roundTrip { return roundTrip{s.LatestRTT, s.SmoothedRTT} }

// lasts reports whether there is silence for long, although something was sent again and again, or although frames were written.
func (w *silence) lasts(s *quic.ConnectionStats, wrote uint64, now time.Time) bool {
	switch {
	case s.PacketsReceived != w.heard:
		w.heard, w.sent, w.since = s.PacketsReceived, 0, time.Time{}
	case w.sent == 0: // what acknowledges is not acknowledged: it does not count
		w.sent = s.PacketsSent
	case s.PacketsSent != w.sent && w.since.IsZero():
		w.since = now
	}
	if told := measured(s); told != w.told {
		w.told, w.asked = told, time.Time{}
	} else if wrote != w.wrote && w.asked.IsZero() {
		w.asked = now
	}
	w.wrote = wrote
	return !w.since.IsZero() && now.Sub(w.since) >= silent || !w.asked.IsZero() && now.Sub(w.asked) >= silent
}

// watch ends the connection when nothing comes through any more and a second handshake is not answered either. One that comes through again
// meanwhile goes on, and so does one beside which a handshake is answered: QUIC itself knows how long to wait then.
func (l *link) watch(ctx context.Context) {
	tick := time.NewTicker(lookEach)
	defer tick.Stop()
	var w silence
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s := l.conn.ConnectionStats()
		if !w.lasts(&s, l.wrote.Load(), time.Now()) {
			continue
		}
		if l.deaf(ctx, measured(&s)) {
			l.blocked.Store(true)
			l.conn.CloseWithError(0, "")
			return
		}
		w.sent, w.since, w.asked = 0, time.Time{}, time.Time{}
	}
}

// deaf reports whether a second handshake gets no answer, and nothing that the connection sent was acknowledged meanwhile.
func (l *link) deaf(ctx context.Context, told roundTrip) bool {
	second, err := l.c.dial(ctx)
	if err == nil {
		second.close()
		return false
	}
	refused, ok := errors.AsType[*quic.TransportError](err)
	if ok && (refused.Remote || refused.ErrorCode.IsCryptoError()) || ctx.Err() != nil { // an answer, too: one connection too many, or a certificate
		return false
	}
	s := l.conn.ConnectionStats()
	return measured(&s) == told
}
