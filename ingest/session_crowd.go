package ingest

import (
	"time"

	"github.com/quic-go/quic-go"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/session"
)

// mostCrowd is how many sessions are on streams before a connection may only have one. A stream costs some 11 KiB from its first byte
// on, whether HELLO comes or not; the 108,000 that 20,000 connections may open (quicdoor's shares) would hold 1.2 GB, and so hold a
// third of that. Whoever has one session is never turned away.
const mostCrowd = 16_384

// enter counts a session on a stream of a connection that has so many with it. It reports whether there is room.
func (s *sessions) enter(here int) bool {
	return s.here.Add(1) <= s.crowd || here == 1
}

func (s *sessions) leave() { s.here.Add(-1) }

// turnAway ends a stream on which there is no room for a session.
func (sc *sessionConn) turnAway(str *quic.Stream) {
	no := session.Error{Retryable: true, Code: string(event.Overloaded), Detail: "too many sessions are open, and this connection has others; end one of them first"}
	str.SetWriteDeadline(time.Now().Add(time.Second))
	str.Write(no.Append(nil)) // who does not take it goes without
	str.CancelRead(0)
	str.Close()
}
