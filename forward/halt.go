package forward

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// halt is the state of a lane that gives up no more events, since its backend refuses too many: see patience.
type halt struct {
	since atomic.Int64 // unix nanoseconds, 0 while it is not halted
	goOn  atomic.Bool  // an operator wants it to give up more
}

// mayGiveUp returns nil when an event that was refused alone may be given up, else an error that has the lane send it again.
func (l *lane) mayGiveUp(now time.Time, why *SendError) error {
	if l.halt.goOn.Swap(false) {
		l.patience = patience{}
	}
	err := l.patience.allow(now, why)
	if err == nil {
		l.moved()
		return nil
	}
	if l.halt.since.CompareAndSwap(0, now.UnixNano()) {
		l.f.log.Error("THE BACKEND REFUSES EVENT AFTER EVENT: the partition sets no more aside and waits for it; mend the backend, or resume the stream to set more aside",
			"partition", l.partition, "error", err)
	}
	return err
}

// moved notes that the lane is not halted, or not any more.
func (l *lane) moved() {
	if l.halt.since.Load() != 0 {
		l.halt.since.Store(0)
		l.f.log.Info("the partition goes on", "partition", l.partition)
	}
}

// Halted returns the partitions that set no more events aside, and since when the first of them does not.
func (f *Forwarder) Halted() (partitions []int, since time.Time) {
	for p, l := range f.lanes {
		at := l.halt.since.Load()
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
		if l.halt.since.Load() != 0 {
			l.halt.goOn.Store(true)
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
