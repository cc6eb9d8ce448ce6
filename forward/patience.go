package forward

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
)

// A backend that refuses event after event has more likely lost its senses than met so much bad content: from
// here on a lane gives up no more events, and tries the one at hand until the backend takes it.
const (
	mostInARow     = 100 // events refused alone with none confirmed between them
	mostInAWindow  = 100 // refused in refusalWindow, where they are also
	mostPerHundred = 1   // more than this part of what was sent in it
	refusalWindow  = 10 * time.Second
)

// patience is whether a lane gives up what its backend refuses. A lane that gives up no more is halted.
type patience struct {
	refusals // the sender's

	haltedSince atomic.Int64 // unix nanoseconds, 0 while the lane is not halted
	resume      atomic.Bool  // an operator wants it to give up more
}

// mayGiveUp returns nil when an event that was refused alone may be given up, else an error that has the lane send it again.
func (l *lane) mayGiveUp(now time.Time, why *SendError) error {
	if l.patience.resume.Swap(false) {
		l.patience.refusals = refusals{}
	}
	err := l.patience.allow(now, why)
	if err == nil {
		l.endHalt()
		return nil
	}
	if l.patience.haltedSince.CompareAndSwap(0, now.UnixNano()) {
		l.f.log.Error("THE BACKEND REFUSES EVENT AFTER EVENT: the partition sets no more aside and waits for it; mend the backend, or resume the stream to set more aside",
			"partition", l.partition, "error", err)
	}
	return err
}

// endHalt notes that the lane is not halted, or not any more.
func (l *lane) endHalt() {
	if l.patience.haltedSince.Load() != 0 {
		l.patience.haltedSince.Store(0)
		l.f.log.Info("the partition goes on", "partition", l.partition)
	}
}

// Halted returns the partitions that set no more events aside, and since when the first of them does not.
func (f *Forwarder) Halted() (partitions []int, since time.Time) {
	for p, l := range f.lanes {
		at := l.patience.haltedSince.Load()
		if at == 0 {
			continue
		}
		partitions = append(partitions, p)
		if t := time.Unix(0, at); since.IsZero() || t.Before(since) {
			since = t
		}
	}
	return partitions, since
}

// Resume lets the partitions that are halted go on: each sets aside again what its backend refuses, as far as its patience goes
// anew. It returns how many there are.
func (f *Forwarder) Resume() (n int) {
	for _, l := range f.lanes {
		if l.patience.haltedSince.Load() != 0 {
			l.patience.resume.Store(true)
			n++
		}
	}
	return n
}

var haltedPartitions = desc("headgate_delivery_halted_partitions", "Partitions that set no more events aside, since the backend refuses too many.")

func (f *Forwarder) collectHalted(ch chan<- prometheus.Metric) {
	partitions, _ := f.Halted()
	ch <- prometheus.MustNewConstMetric(haltedPartitions, prometheus.GaugeValue, float64(len(partitions)), f.cfg.Stream)
}

// refusals counts the events of a lane that were refused lately, and so whether one more may be given up.
type refusals struct {
	row          int  // since the last confirmation
	stopped      bool // no more is given up until something is confirmed
	begin        time.Time
	taken, given int // since begin: confirmed, given up
}

// confirmed notes that the backend took events.
func (p *refusals) confirmed(now time.Time, events int) {
	p.roll(now)
	p.row, p.stopped = 0, false
	p.taken += events
}

// allow returns nil when an event that was refused alone may be given up, and counts it; else an error that has the
// lane send it again.
func (p *refusals) allow(now time.Time, why *SendError) error {
	p.roll(now)
	if p.stopped = p.stopped || p.row >= mostInARow || p.given >= mostInAWindow && p.given*100 > (p.given+p.taken)*mostPerHundred; p.stopped {
		return &SendError{Code: event.BackendUnavailable, Reason: "refuses_too_much", After: pauseCap,
			Err: fmt.Errorf("the backend refused %d events in a row, and %d of %d within %v: no more are given up until it takes this one: %w",
				p.row, p.given, p.given+p.taken, refusalWindow, why.Err)}
	}
	p.row++
	p.given++
	return nil
}

func (p *refusals) roll(now time.Time) {
	if now.Sub(p.begin) >= refusalWindow {
		p.begin, p.taken, p.given = now, 0, 0
	}
}
