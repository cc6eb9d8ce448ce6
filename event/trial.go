package event

import (
	"bytes"
	"unsafe"
)

// MaxTraces is how many events a trial is explained of.
const MaxTraces = 1000

// TraceSize is how many bytes a trial needs for each of them, beside those of its answer.
const TraceSize = int64(unsafe.Sizeof(Trace{}) + unsafe.Sizeof(Error{}))

// Trace is what a trial notes of an event: which stage decided on it, and which gave it its key.
type Trace struct {
	By      string // empty: it is kept
	KeyFrom string // empty: it has no key
	Failed  string // what failed on it, although it went on; empty: nothing

	key    []byte // as it was when the stage before had ended
	hasKey bool
}

// Trace notes, in a trial, that what has changed since the call before it is the work of stage.
func (b *Batch) Trace(stage string) {
	if !b.Trial {
		return
	}
	for len(b.Traces) < min(len(b.Events), MaxTraces) {
		b.Traces = append(b.Traces, Trace{})
	}
	for i := range b.Traces {
		e, t := &b.Events[i], &b.Traces[i]
		if e.Verdict != Keep && t.By == "" {
			t.By = stage
		}
		if e.HasKey != t.hasKey || !bytes.Equal(e.Key, t.key) {
			t.KeyFrom, t.key, t.hasKey = stage, e.Key, e.HasKey
		}
	}
}

// TraceEvent notes, in a trial, that stage has decided on one event.
func (b *Batch) TraceEvent(index int, stage string) {
	if !b.Trial || index >= MaxTraces {
		return
	}
	for len(b.Traces) <= index {
		b.Traces = append(b.Traces, Trace{})
	}
	b.Traces[index].By = stage
}

// Failed notes, in a trial, that a stage failed on an event that goes on all the same.
func (b *Batch) Failed(index int, detail string) {
	if !b.Trial || index >= len(b.Traces) {
		return
	}
	t := &b.Traces[index]
	if t.Failed != "" {
		detail = t.Failed + "; " + detail
	}
	t.Failed = detail
}

// Full reports that more refused events will only be counted.
func (b *Batch) Full() bool {
	if b.Trial {
		return len(b.Errors) >= MaxTraces
	}
	return len(b.Errors) >= MaxErrors
}
