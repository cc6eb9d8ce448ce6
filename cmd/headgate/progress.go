package main

import (
	"fmt"
	"io"
	"time"

	"github.com/headgate-io/headgate/internal/simulate"
)

// progress is a line on a terminal that is written over; on anything else it shows nothing.
type progress struct {
	w     io.Writer // nil: shows nothing
	size  int64     // bytes of the whole file, 0 when not known
	start time.Time
	last  time.Time
	bytes int64
	dirty bool // a line is on the screen
}

const progressEvery = 200 * time.Millisecond

func newProgress(w io.Writer, size int64, now time.Time) *progress {
	if !watched(w) {
		w = nil
	}
	return &progress{w: w, size: size, start: now}
}

// show is called after each batch.
func (p *progress) show(events int, b *batch, now time.Time) {
	p.bytes += int64(len(b.body))
	if p.w == nil || now.Sub(p.last) < progressEvery {
		return
	}
	p.last, p.dirty = now, true
	rate := float64(events) / max(now.Sub(p.start).Seconds(), 1e-3)
	line := fmt.Sprintf("%d events  %.1f MB  %.0f events/s", events, float64(p.bytes)/1e6, rate)
	if p.size > 0 {
		line = fmt.Sprintf("%3d%%  %s", min(100, p.bytes*100/p.size), line)
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", line)
}

// clear takes the line away before something else is printed.
func (p *progress) clear() {
	if p.dirty {
		p.dirty = false
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// share shows how far a simulation is and how even the load is so far.
func (p *progress) share(done, all int, t *simulate.Tally, now time.Time) {
	if p.w == nil || now.Sub(p.last) < progressEvery {
		return
	}
	p.last, p.dirty = now, true
	h := t.Result.Headgate
	fmt.Fprintf(p.w, "\r\x1b[K%3d%%  max/mean %.3f  %d splits  %d moves", int64(done)*100/int64(max(all, 1)), t.Worst(), h.Splits, h.Moves)
}
