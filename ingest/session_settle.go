package ingest

import (
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/session"
)

// settle says the outcomes of flights in their order, those that are known together at once.
func (a *attachment) settle() {
	var next *flight
	for {
		f := next
		if next = nil; f == nil {
			var more bool
			select {
			case f, more = <-a.flights:
			case <-a.durable:
				a.sayDurable()
				continue
			}
			if !more {
				return
			}
		}
		a.await(f)
		group := []*flight{f}
		for next == nil && len(group) < mostFlights {
			select {
			case g, more := <-a.flights:
				if !more {
					a.say(group)
					return
				}
				select {
				case <-g.done:
					group = append(group, g)
				default:
					next = g
				}
				continue
			default:
			}
			break
		}
		a.say(group)
	}
}

// await returns when the outcome of f is known, and says meanwhile that it is durable.
func (a *attachment) await(f *flight) {
	select {
	case <-f.done:
		return
	case <-f.durable:
		if a.of.isForgotten(a.state) {
			break
		}
		a.send((&session.Ack{Level: session.Durable, UpTo: f.last()}).Append(nil))
	}
	<-f.done
}

// say settles flights whose outcome is known. Behind one whose outcome is lost nothing is settled: its client sends it, and
// what follows, again.
func (a *attachment) say(group []*flight) {
	var frames []byte
	var size int64
	var last uint64
	acked := a.deliveredNow()
	if a.of.isForgotten(a.state) { // an ACK would be said of what is lost, too
		a.cut = true
	}
	for _, f := range group {
		if f.lost != nil {
			a.of.miss(f)
		}
	}
	for _, f := range group {
		if f.lost != nil && !a.cut {
			a.cut = true
			a.end(&session.Error{Retryable: true, Code: string(f.lost.Code), Detail: f.lost.Detail})
		}
		if a.cut {
			break
		}
		o := outcome{last: f.last(), frames: f.frames}
		if len(o.frames) > mostKeptOf {
			o.frames = o.frames[f.result:]
		}
		a.of.settle(a.state, o, f.level)
		frames = append(frames, f.frames...)
		size += f.size
		last = f.last()
	}
	if last == 0 {
		return
	}
	frames = a.appendDurable(frames)
	a.of.flush()
	frames = a.appendAck(frames, acked, last, a.deliveredNow())
	a.send(a.grant(frames, size))
}

// grant appends the credit that a client gets back for settled bytes, if there is memory, or when it has none of ours.
func (a *attachment) grant(frames []byte, size int64) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.owed += size
	b := a.of.core.budget
	if b.Held() > b.Limit()/2 && a.credit+a.owed < a.window {
		return frames
	}
	frames = (&session.Credit{Bytes: uint64(a.owed)}).Append(frames)
	a.credit, a.owed = a.credit+a.owed, 0
	return frames
}

// hold says that a frame waits, and lets some time pass; it reports false when the session ends meanwhile.
func (a *attachment) hold(no *event.Problem) bool {
	pause := holdTime(no.RetryAfter)
	a.send((&session.SlowDown{Millis: uint64(pause.Milliseconds()), Code: string(no.Code), Detail: no.Detail}).Append(nil))
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.ended:
		return false
	}
}
