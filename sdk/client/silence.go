package client

import (
	"context"
	"errors"
	"time"
)

// How UDP that stops coming through is noticed, in less than 3 s in all. What is sent is acknowledged within 25 ms and a round
// trip (RFC 9000 section 13.2.1), so a connection that is not heard for longer, although it sends again and again, is in trouble.
// Whether that is a way that loses much, a gateway that is busy, or a wall, shows a second handshake.
const (
	lookEach = 100 * time.Millisecond
	silent   = 500 * time.Millisecond
)

// errBlocked ends a connection that is to be followed by HTTP.
var errBlocked = errors.New("nothing comes through over UDP any more")

// watch ends the connection when nothing is heard any more and a second handshake is not answered either. One that is heard again
// meanwhile goes on, and so does one beside which a handshake is answered: QUIC itself knows how long to wait then.
func (l *link) watch(ctx context.Context) {
	tick := time.NewTicker(lookEach)
	defer tick.Stop()
	var heard, sent uint64
	var since time.Time // when the first was sent that nothing was heard after; zero: nothing was
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s := l.conn.ConnectionStats()
		switch {
		case s.PacketsReceived != heard:
			heard, sent, since = s.PacketsReceived, 0, time.Time{}
		case sent == 0: // what acknowledges is not acknowledged: it does not count
			sent = s.PacketsSent
		case s.PacketsSent == sent && since.IsZero():
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= silent:
			if l.deaf(ctx, heard) {
				l.blocked.Store(true)
				l.conn.CloseWithError(0, "")
				return
			}
			since = time.Time{}
			sent = 0
		}
	}
}

// deaf reports whether a second handshake gets no answer, and the connection has heard nothing meanwhile.
func (l *link) deaf(ctx context.Context, heard uint64) bool {
	second, err := l.c.dial(ctx)
	if err == nil {
		second.close()
	}
	return err != nil && ctx.Err() == nil && l.conn.ConnectionStats().PacketsReceived == heard
}
