// Package rate limits what somebody may do in a time: token buckets as pure steps, and tables of them of a fixed size.
package rate

import "time"

// Limit is what comes into a bucket each second, and how large the bucket is.
type Limit struct {
	Events float64       // a second, which may be less than one; 0: no limit
	Bytes  int64         // a second; 0: no limit
	Burst  time.Duration // in which an empty bucket fills: it holds so many seconds of Events and Bytes
}

// Any reports whether there is a limit at all.
func (l *Limit) Any() bool { return l.Events > 0 || l.Bytes > 0 }

// Ask is what is to be taken of a bucket: all of it or, when a part is not there, nothing.
type Ask struct {
	Events, Bytes int64
	Room          int64 // events that have to be there besides, and stay
	Again         int64 // bytes that whoever is refused needs besides when it asks again
}

// Moment is a time in nanoseconds since the start of a table, from 1.
type Moment int64

// bucket is when its events and its bytes are full again: n taken of a full one put that off by the time in which n
// come. So one that is full says nothing, and the zero bucket is one.
type bucket struct {
	events, bytes Moment
	refused       Moment // the last moment in which something was not there
}

// fullAt is when nothing is missing any more.
func (b *bucket) fullAt() Moment { return max(b.events, b.bytes) }

// take is a step of a bucket: what it is after the ask, and with wait 0 the ask is granted; otherwise nothing of it is
// taken, and it would be granted after wait if nobody else took anything. What is more than the bucket holds is granted
// by a full one, which then owes it. Who was refused is refused for the rest of the moment, so that of several asks at a
// time a smaller one does not overtake.
func (l *Limit) take(b bucket, ask Ask, now Moment) (next bucket, wait time.Duration) {
	events, bytes := cost(ask.Events, l.Events), cost(ask.Bytes, float64(l.Bytes))
	late := max(l.late(b.events, cost(ask.Events+ask.Room, l.Events), now), l.late(b.bytes, bytes, now))
	if late <= 0 && b.refused != now {
		return bucket{events: max(b.events, now) + events, bytes: max(b.bytes, now) + bytes, refused: b.refused}, 0
	}
	b.refused = now
	late = max(late, l.late(b.bytes, cost(ask.Bytes+ask.Again, float64(l.Bytes)), now))
	return b, max(1, time.Duration(late))
}

// give is a step of a bucket into which goes back what was taken.
func (l *Limit) give(b bucket, ask Ask) bucket {
	b.events -= cost(ask.Events, l.Events)
	b.bytes -= cost(ask.Bytes, float64(l.Bytes))
	return b
}

// late is how long from now on the cost is not there.
func (l *Limit) late(full, cost, now Moment) Moment {
	return max(full, now) + min(cost, Moment(l.Burst)) - Moment(l.Burst) - now
}

// longestCost keeps moments within an int64: 73 years.
const longestCost = 1 << 61

// cost is the time in which n come, rounded down, so that a bucket gives all that it holds: a billion a second is the
// most that a limit can tell from no limit.
func cost(n int64, perSecond float64) Moment {
	if perSecond <= 0 || n <= 0 {
		return 0
	}
	return Moment(max(1, min(float64(n)*float64(time.Second)/perSecond, longestCost)))
}
