package forward

import "time"

// Alarm calls back once, so long after it was set last.
type Alarm interface {
	Set(d time.Duration)
	Close()
}

// timer is the runtime's.
type timer struct{ *time.Timer }

func newTimer(call func()) Alarm {
	t := timer{time.AfterFunc(time.Hour, call)}
	t.Stop()
	return t
}

func (t timer) Set(d time.Duration) { t.Reset(d) }

func (t timer) Close() { t.Stop() }
