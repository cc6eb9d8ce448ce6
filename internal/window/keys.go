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

// Keys is the requests that came with an idempotency key: running ones, and finished ones with their answers, of each kind
// limit keys at most. When another one is finished, the owner who holds most loses its oldest. Its methods may be called
// concurrently.
type Keys struct {
	made  time.Time
	limit int
	age   time.Duration
	room  int // bytes of an answer for which a key pays; larger ones count as several keys

	mu      sync.Mutex
	runs    map[Sum]*Run
	running crowd
	shares  shares[answers]
	all     *list.List // of *Run that are finished, the oldest in front
	size    int        // of all shares
	forced  int64      // as in Set
	lost    int64      // the same of owners that hold nothing now

	log     Log    // what is finished and safe is kept there; nil: nowhere
	scratch []byte // a record for it
	read    bool   // it says since when it has everything
}

// answers are the finished runs of one owner; its share is as large as they count keys.
type answers struct {
	runs   list.List // of *Run, the oldest in front
	forced int64     // as in Set, of this owner
	known  bool      // forced is set
}

// Answers are remembered up to answerRoom bytes for each key, and answersRoom in all where that is more: those to requests
// in which all went well have some 200 bytes.
const (
	answerRoom  = 640
	answersRoom = 64 << 20
)

// NewKeys returns an empty window of limit keys, each for as long as age after its request was finished.
func NewKeys(limit int, age time.Duration, now time.Time) *Keys {
	return &Keys{made: now, limit: limit, age: age, room: max(answerRoom, answersRoom/limit), runs: map[Sum]*Run{},
		running: newCrowd(limit), all: list.New(), forced: -1, lost: -1}
}

// Run is a request that came with a key. Its fields are guarded by keys.mu.
type Run struct {
	keys    *Keys
	key     Sum
	content Sum
	cell    cell            // of the crowd, while it runs
	share   *share[answers] // of who sent it
	safe    bool            // all its events are
	unknown bool            // its client was told that the outcome is not known yet
	ended   chan struct{}   // closed when it is finished or forgotten
	place   *list.Element   // of all; nil until it is finished
	own     *list.Element   // of those of its owner; nil until it is finished
	at      uint32          // second in which it was finished
	size    int             // keys that it counts as, when it is finished
	answer  packed
}

// Request is what a request with a key is known by, and who waits for it.
type Request struct {
	Key, Content Sum
	Stream       string // it runs until its events have come there
	Owner        Owner
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
func (k *Keys) Begin(q Request, now time.Time) (first *Run, standing int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expire(now)
	r := k.runs[q.Key]
	switch {
	case r == nil:
	case r.content != q.Content:
		return nil, Different
	case r.place != nil:
		return r, Finished
	case r.unknown:
		return r, Unknown
	default:
		return r, Running
	}
	c := cell{q.Stream, q.Owner}
	if !k.running.enter(c) {
		return nil, Full
	}
	r = &Run{keys: k, key: q.Key, content: q.Content, cell: c, share: k.share(q.Owner), ended: make(chan struct{})}
	k.runs[q.Key] = r
	return r, NewRun
}

// share returns the share of an owner for one more use.
func (k *Keys) share(o Owner) *share[answers] {
	sh := k.shares.use(o)
	if !sh.held.known {
		sh.held.forced, sh.held.known = k.lost, true
	}
	return sh
}

// Finish remembers the answer; Doc is the window's from now on.
func (r *Run) Finish(a Answer, now time.Time) {
	k := r.keys
	answer := k.pack(a)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.runs[r.key] != r || r.place != nil {
		return // it was forgotten
	}
	r.answer, r.at = answer, second(k.made, now)
	k.running.leave(r.cell)
	k.keep(k.enter(r))
}

// enter puts a run that has its answer among the finished ones, and makes room. Its use of its share ends.
func (k *Keys) enter(r *Run) *Run {
	r.size = 1 + (len(r.answer.doc)-1)/k.room
	r.place, r.own = k.all.PushBack(r), r.share.held.runs.PushBack(r)
	r.share.size += r.size
	k.size += r.size
	close(r.ended)
	k.leave(r.share)
	for k.size > k.limit {
		k.force(k.shares.heap[0])
	}
	return r
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
	k.running.leave(r.cell)
	k.leave(r.share)
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
	return r.answer.unpack(), r.answer.status != 0, nil
}

// force forgets the oldest finished run of a share before its time.
func (k *Keys) force(sh *share[answers]) {
	r := sh.held.runs.Front().Value.(*Run)
	sh.held.forced = max(sh.held.forced, int64(r.at))
	k.forced = max(k.forced, int64(r.at))
	k.forget(r)
}

func (k *Keys) forget(r *Run) {
	k.all.Remove(r.place)
	r.share.held.runs.Remove(r.own)
	r.share.size -= r.size
	k.size -= r.size
	delete(k.runs, r.key)
	r.share.users++
	k.leave(r.share)
}

// leave ends a use of a share. What is known of one that is closed holds for all that are opened.
func (k *Keys) leave(sh *share[answers]) {
	if sh.users == 1 && sh.size == 0 {
		k.lost = max(k.lost, sh.held.forced)
	}
	k.shares.done(sh)
}

func (k *Keys) expire(now time.Time) {
	past := max(now.Sub(k.made), 0) - k.age
	for f := k.all.Front(); f != nil && past > time.Duration(f.Value.(*Run).at+1)*time.Second; f = k.all.Front() {
		k.forget(f.Value.(*Run))
	}
}

// State describes the window; its Reach is that of the owner who had to make most room.
func (k *Keys) State(now time.Time) State {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expire(now)
	return State{k.running.all, k.all.Len(), reach(k.made, now, k.forced, k.age)}
}

// Reach returns how far back the window remembers every request of an owner that was finished.
func (k *Keys) Reach(o Owner, now time.Time) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	forced := k.lost
	if sh := k.shares.find(o); sh != nil {
		forced = sh.held.forced
	}
	return reach(k.made, now, forced, k.age)
}
