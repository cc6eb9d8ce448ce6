// Package forwardtest holds what every backend is tested with: one contract suite, and backends, in memory and as an
// HTTP node, that misbehave by a script.
package forwardtest

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/headgate-io/headgate/forward"
)

// Step is what a Backend does with one Send.
type Step struct {
	Arrived chan<- struct{} // closed when the run is there; may be nil
	After   <-chan struct{} // comes next: nothing happens before it, or only the end of ctx
	Err     error           // the answer; nil: the run is stored and confirmed
	Store   bool            // the run is stored in spite of Err, as when an answer is lost on its way
}

// Backend is a forward.Backend in memory that follows a script and recognises what it has stored. Its zero value
// confirms everything. It panics when a lane has two runs in flight.
type Backend struct {
	mu     sync.Mutex
	script []Step
	judge  func(*forward.Run) error
	runs   []forward.Run
	last   map[int32]uint64
	busy   map[int32]bool
	sends  int
}

// Script appends steps, which the next Sends take in turn; without one a Send stores what Judge lets pass.
func (b *Backend) Script(steps ...Step) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.script = append(b.script, steps...)
}

// Judge has f decide on runs without a step: its error is the answer.
func (b *Backend) Judge(f func(*forward.Run) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.judge = f
}

// Runs returns what is stored, in the order of storing.
func (b *Backend) Runs() []forward.Run {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.runs)
}

// Sends returns how often Send was called.
func (b *Backend) Sends() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sends
}

// Resume is that of forward.Backend.
func (b *Backend) Resume(_ context.Context, partition int32) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last[partition], nil
}

// Send is that of forward.Backend.
func (b *Backend) Send(ctx context.Context, run *forward.Run) error {
	step := b.begin(run)
	defer b.end(run)
	if step.Arrived != nil {
		close(step.Arrived)
	}
	if step.After != nil {
		select {
		case <-step.After:
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if step.Err == nil || step.Store {
		b.store(run)
	}
	return step.Err
}

func (b *Backend) begin(run *forward.Run) (step Step) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy[run.Partition] {
		panic("forwardtest: two runs of one lane in flight")
	}
	if b.busy == nil {
		b.busy, b.last = map[int32]bool{}, map[int32]uint64{}
	}
	b.busy[run.Partition] = true
	b.sends++
	if len(b.script) > 0 {
		step, b.script = b.script[0], b.script[1:]
	} else if b.judge != nil {
		step.Err = b.judge(run)
	}
	return step
}

func (b *Backend) store(run *forward.Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if run.Last <= b.last[run.Partition] {
		return
	}
	kept := *run
	kept.Payload = bytes.Clone(run.Payload)
	b.runs = append(b.runs, kept)
	b.last[run.Partition] = run.Last
}

func (b *Backend) end(run *forward.Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy[run.Partition] = false
}
