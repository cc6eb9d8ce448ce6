package faults

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
	"github.com/headgate-io/headgate/sdk/consume"
)

// bed is a gateway's data folder, its backend and its clients, over several lives of the gateway.
type bed struct {
	t        *testing.T
	data     string
	settings []string
	node     *node // nil: the backend is the embedded JetStream
	load     *load
	adaptive string // more of the stream's definition
	result
}

// newBed makes one for a fault. The settings make small segments, so that they rotate and go.
func newBed(t *testing.T, r result) *bed {
	t.Helper()
	b := &bed{t: t, data: t.TempDir(), result: r, load: newLoad(r.Seed, 6, 20)}
	b.load.again = true
	b.settings = []string{"--set", "spool.max_bytes=1MiB", "--set", "auto_create=true",
		"--set", `streams={s: {key: {json: /k}, id: {json: /id}, partitions: 4}}`}
	return b
}

// onNode replaces the backend by an HTTP node.
func (b *bed) onNode() *bed {
	b.node = newNode(b.t)
	b.load.again = false // what a node confirmed at once is in no spool: nobody can look up its ids
	b.settings = append(b.settings, "--set", fmt.Sprintf("backends={lake: {webhook: {nodes: [%q]}}}", b.node.URL),
		"--set", `streams={s: {backend: lake, key: {json: /k}, id: {json: /id}, partitions: 4`+b.adaptive+`}}`)
	return b
}

// fencing has the table change all the time, by keys that are hot for a moment.
func (b *bed) fencing() {
	b.load.seed |= hotSeed
	for _, c := range b.load.clients {
		c.seed |= hotSeed
	}
	b.adaptive = ", adaptive: {hold: 100ms}"
	b.with(`streams={s: {key: {json: /k}, id: {json: /id}, partitions: 4` + b.adaptive + `}}`)
}

// with adds settings.
func (b *bed) with(settings ...string) *bed {
	for _, s := range settings {
		b.settings = append(b.settings, "--set", s)
	}
	return b
}

// finish starts the gateway for good, lets it deliver everything, and fills the account.
func (b *bed) finish() result {
	b.t.Helper()
	g := start(b.t, b.data, "", b.settings...)
	b.Recover = max(b.Recover, g.recovery.Seconds())
	b.account = *b.load.check(b.rows(g))
	if code := g.stop(); code != 0 {
		b.t.Errorf("seed %d: exit %d; log:\n%s", b.Seed, code, g.log)
	}
	return b.result
}

// rows returns everything that there is, once the backend has it.
func (b *bed) rows(g *gateway) (all []row) {
	b.t.Helper()
	if b.node != nil {
		b.node.down.Store(0)
	}
	g.idle()
	for _, s := range b.load.streams() {
		if s != mainStream || b.node == nil {
			all = append(all, g.rows(s)...)
		}
	}
	if b.node == nil {
		return all
	}
	own, again := b.node.rows(b.t)
	b.Note = fmt.Sprintf("%d events came again under their numbers", again)
	return append(all, own...)
}

// node is an HTTP node that refuses as many of ten posts as down says.
type node struct {
	*forwardtest.Receiver
	down  atomic.Int32
	posts atomic.Int32
}

func newNode(t testing.TB) *node {
	n := &node{Receiver: forwardtest.NewReceiver(t)}
	n.Judge(func(*forward.Run) forwardtest.Answer {
		if n.posts.Add(7)%10 < n.down.Load() {
			return forwardtest.Answer{Status: 503}
		}
		return forwardtest.Answer{}
	})
	return n
}

// rows returns the events that the node took. One that comes again after a crash is known by its lane and number, must be
// what it was, and counts once.
func (n *node) rows(t testing.TB) (all []row, again int) {
	t.Helper()
	type lane struct {
		gateway   string
		partition uint32
	}
	type seen struct {
		events map[uint64]string
		last   uint64
	}
	lanes := map[lane]*seen{}
	for _, r := range n.Runs() {
		err := consume.Decode(r.Payload, r.ContentEncoding, r.ContentType, func(e consume.Event) error {
			at := lane{e.Gateway, e.Partition}
			s := lanes[at]
			if s == nil {
				s = &seen{events: map[uint64]string{}}
				lanes[at] = s
			}
			if before, ok := s.events[e.Number]; ok {
				if again++; before != string(e.Data) {
					t.Fatalf("number %d of partition %d was %.80s and is %.80s", e.Number, e.Partition, before, e.Data)
				}
				return nil
			}
			if e.Number < s.last {
				t.Fatalf("number %d of partition %d came behind %d", e.Number, e.Partition, s.last)
			}
			s.last, s.events[e.Number] = e.Number, string(e.Data)
			all = append(all, row{Stream: e.Stream, Partition: int(e.Partition), Gateway: e.Gateway, Number: e.Number, Data: string(e.Data)})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.SortStableFunc(all, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Gateway, b.Gateway), a.Partition-b.Partition)
	})
	return all, again
}
