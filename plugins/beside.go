package plugins

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/headgate-io/headgate/event"
)

// beside runs one version over copies of the events that another one processes, and compares what they made of them. Nobody
// waits for it, and what it costs is bounded: what is over is skipped, and counted.
type beside struct {
	step   *step // nil: there is no such version, and events stay as they are
	counts *comparison
	bill   *bill // of the version that is tried; counts the same for all streams together
	seed   maphash.Seed

	queue   chan *sample
	waiting atomic.Int64 // bytes that samples in the queue and under way take
	paid    atomic.Int64 // until when its time is used up, unix nanoseconds
	stop    context.CancelFunc
	done    chan struct{}
}

// What the version beside may have of the machine.
const (
	besideShare   = 4               // of one core, it has one part in so many
	besideAtOnce  = 1 * time.Second // what it had before counts for so long: it may have a quarter of that at once
	sampleEvents  = 4_096           // of a request, the first so many are compared
	sampleBytes   = 2 << 20         // of them
	samplesBytes  = 8 << 20         // of all samples that wait; one more may come then
	samplesAtOnce = 64
)

func newBeside(s *step, bill *bill) *beside {
	ctx, cancel := context.WithCancel(context.Background())
	w := &beside{
		step: s, counts: &comparison{}, bill: bill, seed: maphash.MakeSeed(),
		queue: make(chan *sample, samplesAtOnce), stop: cancel, done: make(chan struct{}),
	}
	go w.run(ctx)
	return w
}

// close ends the comparison: a call that is under way is waited for, what is in the queue is not compared any more.
func (w *beside) close() {
	w.stop()
	close(w.queue)
	<-w.done
}

func (w *beside) run(ctx context.Context) {
	defer close(w.done)
	for s := range w.queue {
		began := time.Now()
		w.compare(ctx, s)
		w.paid.Store(max(w.paid.Load(), began.UnixNano()) + int64(time.Since(began))*besideShare)
		s.drop()
	}
}

// compare processes a sample and compares.
func (w *beside) compare(ctx context.Context, s *sample) {
	if w.step != nil && w.step.process(ctx, &s.batch) != nil {
		w.skip(len(s.events))
		return
	}
	var d differences
	for i := range s.events {
		if e := &s.batch.Events[i]; e.Verdict == event.DeadLettered {
			d.compared++
			d.failed++
		} else {
			d.compare(s.fates[i], fateOf(e, s.events[i].Data, w.seed))
		}
	}
	w.counts.count(d)
	w.bill.compared.count(d)
}

func (w *beside) skip(n int) {
	w.counts.skipped.Add(int64(n))
	w.bill.compared.skipped.Add(int64(n))
}

// sample is a copy of the events of a request that are still kept, or of the first of them.
type sample struct {
	of      *beside
	index   []int32       // where each is in the batch
	events  []event.Event // as they were
	data    []byte        // what they are views of
	fates   []fate        // what the version that processes the events themselves made of them
	batch   event.Batch   // of the copies
	copies  []event.Event // its events
	headers []event.Attr  // of the request
}

// samples keeps memory of samples for the next ones.
var samples = sync.Pool{New: func() any { return &sample{} }}

// take copies the events of b that are still kept, as far as the version beside may be paid for; nil when there are none.
func (w *beside) take(b *event.Batch) *sample {
	kept, size, n := 0, 0, 0
	for i := range b.Events {
		e := &b.Events[i]
		if e.Verdict != event.Keep {
			continue
		}
		if kept == n && n < sampleEvents && size+len(e.Data) <= sampleBytes {
			n++
			size += len(e.Data) + len(e.Key)
		}
		kept++
	}
	if time.Duration(w.paid.Load()-time.Now().UnixNano()) > besideAtOnce || w.waiting.Load() > samplesBytes {
		n = 0
	}
	if kept > n {
		w.skip(kept - n)
	}
	if n == 0 {
		return nil
	}
	s := samples.Get().(*sample)
	s.of = w
	s.fill(b, n, size)
	w.waiting.Add(s.size())
	return s
}

// fill copies the first n events that are kept, which have so many bytes.
func (s *sample) fill(b *event.Batch, n, size int) {
	for _, h := range b.Headers {
		size += len(h.Name) + len(h.Value)
	}
	if cap(s.data) < size { // else what was copied would move
		s.data = make([]byte, 0, size)
	}
	s.data = s.data[:0]
	own := func(p []byte) []byte {
		at := len(s.data)
		s.data = append(s.data, p...)
		return s.data[at:len(s.data):len(s.data)]
	}
	s.index, s.events, s.fates = s.index[:0], s.events[:0], s.fates[:0]
	for i := range b.Events {
		if e := &b.Events[i]; e.Verdict == event.Keep && len(s.index) < n {
			s.index = append(s.index, int32(i))
			s.events = append(s.events, event.Event{Data: own(e.Data), Key: own(e.Key), HasKey: e.HasKey})
		}
	}
	s.copies = append(s.copies[:0], s.events...)
	s.headers = s.headers[:0]
	for _, h := range b.Headers {
		s.headers = append(s.headers, event.Attr{Name: own(h.Name), Value: own(h.Value)})
	}
	s.batch = event.Batch{Stream: b.Stream, Syntax: b.Syntax, Owner: b.Owner, Arrived: b.Arrived, Events: s.copies, Headers: s.headers}
}

func (s *sample) size() int64 {
	return int64(len(s.data)) + int64(len(s.events))*int64(2*unsafe.Sizeof(event.Event{})+unsafe.Sizeof(fate{}))
}

// send notes what became of the events and hands the copies over. s may be nil.
func (s *sample) send(b *event.Batch) {
	if s == nil {
		return
	}
	for i, at := range s.index {
		s.fates = append(s.fates, fateOf(&b.Events[at], s.events[i].Data, s.of.seed))
	}
	select {
	case s.of.queue <- s:
	default:
		s.of.skip(len(s.events))
		s.drop()
	}
}

// drop gives the sample up. s may be nil.
func (s *sample) drop() {
	if s == nil {
		return
	}
	s.of.waiting.Add(-s.size())
	s.of = nil
	samples.Put(s)
}
