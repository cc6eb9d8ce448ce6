package window

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"
)

// Sum is a hash of what names a request, or of its content. It keeps its strength over restarts, without a secret.
type Sum [sha256.Size]byte

// Sums hashes parts, each with its length: no two lists of parts are the same.
func Sums(parts ...[]byte) (sum Sum) {
	h := sha256.New()
	var length [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write(p)
	}
	h.Sum(sum[:0])
	return sum
}

// Answer is what a request was answered, so that it can be said again.
type Answer struct {
	Status    int
	MediaType string
	Rejected  string // of the header Headgate-Rejected, empty for none
	Doc       []byte
}

// Keys is the requests that came with an idempotency key: running ones, and finished ones with their answers. It holds
// limit keys and maxAnswers bytes at most and forgets the oldest finished one first, never a running one. Its methods
// may be called concurrently.
type Keys struct {
	made  time.Time
	limit int
	age   time.Duration

	mu       sync.Mutex
	runs     map[Sum]*Run
	finished *list.List // of *Run, the oldest in front
	bytes    int        // of their answers
	forced   int64      // as in Set
}

// maxAnswers bounds the answers that are remembered: 100,000 of those to requests in which all went well are 20 MiB.
const maxAnswers = 64 << 20

// NewKeys returns an empty window of limit keys, each for as long as age after its request was finished.
func NewKeys(limit int, age time.Duration, now time.Time) *Keys {
	return &Keys{made: now, limit: limit, age: age, runs: map[Sum]*Run{}, finished: list.New(), forced: -1}
}

// Run is a request that came with a key. Its fields are guarded by keys.mu.
type Run struct {
	keys    *Keys
	key     Sum
	content Sum
	unknown bool          // its client was told that the outcome is not known yet
	ended   chan struct{} // closed when it is finished or forgotten
	place   *list.Element // nil until it is finished
	at      uint32        // second in which it was finished
	answer  Answer
}

// How a request with a key stands.
const (
	NewRun    = iota // it is the first: it runs, and ends with Finish or Forget
	Running          // the first one runs, and nobody has had an answer yet
	Unknown          // the first one was answered with an outcome that is not known yet: Wait for it
	Finished         // the first one has ended: Replay it
	Different        // the key was used with other content
	Full             // too many requests run
)

// Begin says how a request stands, and returns the first one with its key; none when it is Different or the window Full.
func (k *Keys) Begin(key, content Sum, now time.Time) (first *Run, standing int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expire(now)
	r := k.runs[key]
	switch {
	case r == nil:
	case r.content != content:
		return nil, Different
	case r.place != nil:
		return r, Finished
	case r.unknown:
		return r, Unknown
	default:
		return r, Running
	}
	if len(k.runs) >= k.limit {
		if k.finished.Len() == 0 {
			return nil, Full
		}
		k.force()
	}
	r = &Run{keys: k, key: key, content: content, ended: make(chan struct{})}
	k.runs[key] = r
	return r, NewRun
}

// Finish remembers the answer; Doc is the window's from now on.
func (r *Run) Finish(a Answer, now time.Time) {
	k := r.keys
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.runs[r.key] != r || r.place != nil {
		return // it was forgotten
	}
	r.answer, r.at = a, second(k.made, now)
	r.place = k.finished.PushBack(r)
	close(r.ended)
	for k.bytes += len(a.Doc); k.bytes > maxAnswers; {
		k.force()
	}
}

// Forget ends a request of which nothing is stored: its key is free again.
func (r *Run) Forget() {
	k := r.keys
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.runs[r.key] != r || r.place != nil {
		return // it has ended before
	}
	delete(k.runs, r.key)
	close(r.ended)
}

// SetUnknown says that the request was answered, and its outcome is not known: it goes on running. Perhaps it has
// finished meanwhile.
func (r *Run) SetUnknown() {
	r.keys.mu.Lock()
	defer r.keys.mu.Unlock()
	r.unknown = true
}

// Wait returns the answer of a run as soon as it is finished; ok is false when it was forgotten. The error is that of
// ctx, which ended first.
func (r *Run) Wait(ctx context.Context) (a Answer, ok bool, err error) {
	select {
	case <-r.ended:
	case <-ctx.Done():
		return Answer{}, false, ctx.Err()
	}
	r.keys.mu.Lock()
	defer r.keys.mu.Unlock()
	return r.answer, r.answer.Status != 0, nil
}

// force forgets the oldest finished run before its time.
func (k *Keys) force() {
	k.forced = max(k.forced, int64(k.finished.Front().Value.(*Run).at))
	k.forget()
}

func (k *Keys) forget() {
	r := k.finished.Remove(k.finished.Front()).(*Run)
	k.bytes -= len(r.answer.Doc)
	delete(k.runs, r.key)
}

func (k *Keys) expire(now time.Time) {
	past := max(now.Sub(k.made), 0) - k.age
	for f := k.finished.Front(); f != nil && past > time.Duration(f.Value.(*Run).at+1)*time.Second; f = k.finished.Front() {
		k.forget()
	}
}

// State describes the window.
func (k *Keys) State(now time.Time) State {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expire(now)
	return State{len(k.runs) - k.finished.Len(), k.finished.Len(), reach(k.made, now, k.forced, k.age)}
}

// Reach returns how far back the window remembers every request that was finished.
func (k *Keys) Reach(now time.Time) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return reach(k.made, now, k.forced, k.age)
}
