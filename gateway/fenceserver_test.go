package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/control"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/partitioner"
)

// fenceServer is what a JetStream stream does for a chain of messages: one sequence over all subjects, and the check of the last
// one of a subject. It knows no window of duplicates, since nothing may rely on that.
type fenceServer struct {
	w    *fenceWorld
	mu   sync.Mutex
	log  []*nats.Msg // at its sequence less one
	last map[string]uint64
	held []heldPublish

	removed int // messages
}

// heldPublish comes right behind the next process's question where the lane ends: the worst moment there is.
type heldPublish struct {
	subject string
	from    *fenceProcess
	reach   func()
}

func (s *fenceServer) hold(subject string, from *fenceProcess, reach func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = append(s.held, heldPublish{subject, from, reach})
}

// letGo has arrive what others than p have sent to a subject.
func (s *fenceServer) letGo(subject string, p *fenceProcess) {
	s.mu.Lock()
	var now []heldPublish
	s.held = slices.DeleteFunc(s.held, func(h heldPublish) bool {
		if h.subject != subject || h.from == p {
			return false
		}
		now = append(now, h)
		return true
	})
	s.mu.Unlock()
	for _, h := range now {
		h.reach()
	}
}

func newFenceServer(w *fenceWorld) *fenceServer { return &fenceServer{w: w, last: map[string]uint64{}} }

var errWrongLast = &js.APIError{Code: 400, ErrorCode: 10071, Description: "wrong last sequence"}

func (s *fenceServer) publish(m *nats.Msg) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	want, err := strconv.ParseUint(m.Header.Get(js.ExpectedLastSubjSeqHeader), 10, 64)
	if err != nil {
		return 0, err
	}
	if want != s.last[m.Subject] && s.w.without != chainCheck {
		return 0, errWrongLast
	}
	s.log = append(s.log, m)
	s.last[m.Subject] = uint64(len(s.log))
	s.w.say("stored %d: %s %s-%s %s", len(s.log), m.Subject, m.Header.Get(forward.HeaderFirst), m.Header.Get(forward.HeaderLast), m.Header.Get("Headgate-Marker"))
	return uint64(len(s.log)), nil
}

// get returns the sequence of a message, 0 for none: the last one of a subject, or the first one from a sequence on.
func (s *fenceServer) get(last, next string, from uint64) (uint64, *nats.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last != "" {
		if seq := s.last[last]; seq > 0 {
			return seq, s.log[seq-1]
		}
		return 0, nil
	}
	for seq := max(from, 1); seq <= uint64(len(s.log)); seq++ {
		if s.log[seq-1].Subject == next {
			return seq, s.log[seq-1]
		}
	}
	return 0, nil
}

// remove takes a message away: its sequence is not given again, and the lane ends in what is left.
func (s *fenceServer) remove(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq == 0 || seq > uint64(len(s.log)) || s.log[seq-1].Subject == "" {
		return
	}
	subject := s.log[seq-1].Subject
	s.w.say("removed %d: %s", seq, subject)
	s.removed++
	s.log[seq-1] = &nats.Msg{Header: nats.Header{"Headgate-Marker": {"removed"}}}
	for s.last[subject] > 0 && s.log[s.last[subject]-1].Subject != subject {
		s.last[subject]--
	}
}

// fenceConn is the connection of one process to the server: requests and answers get lost, come late, or come twice.
type fenceConn struct {
	js.JetStream
	p *fenceProcess
}

var errCut = errors.New("the process has gone")

// travel carries a call to the server and its answer back; reach makes the call.
func (c *fenceConn) travel(ctx context.Context, name string, reach func()) error {
	w, r, arrive := c.p.w, c.p.w.draw(name), reach
	reach = func() {
		if w.external || !c.p.isGone() { // else the server has gone with it
			arrive()
		}
	}
	faults := 100
	if w.calm.Load() {
		faults = math100
	}
	silence := func() error {
		select {
		case <-ctx.Done():
		case <-c.p.gone:
		}
		return nats.ErrTimeout
	}
	there, back, later := w.delay(r), w.delay(r), time.Duration(r.Int64N(int64(3*time.Second)))
	if w.isDark() {
		return silence()
	}
	switch n := r.IntN(faults); {
	case n < 4:
		w.say("#%d %s: lost", c.p.number, name)
		return silence()
	case n < 9: // the answer, if there is one, comes when nobody waits any more
		w.say("#%d %s: late", c.p.number, name)
		if subject, ok := strings.CutPrefix(name, "publish "); ok && w.external && r.IntN(2) == 0 {
			w.server.hold(subject, c.p, reach)
			if w.crashIn.Load() <= 0 && r.IntN(2) == 0 {
				w.crashIn.Store(1)
			}
			return silence()
		}
		w.late.Go(func() { <-time.After(there + later); reach() })
		return silence()
	case n < 13:
		w.say("#%d %s: answer lost", c.p.number, name)
		w.late.Go(func() { <-time.After(there); reach() })
		return silence()
	case n < 16:
		w.late.Go(func() { <-time.After(there + later); reach() })
	}
	arrived := make(chan struct{})
	w.late.Go(func() { // what is on its way arrives, whatever becomes of its sender
		<-time.After(there)
		reach()
		close(arrived)
	})
	select {
	case <-arrived:
	case <-ctx.Done():
		return nats.ErrTimeout
	case <-c.p.gone:
		return errCut
	}
	c.p.step("answer of " + name)
	if !c.p.rest(ctx, back) {
		return errCut
	}
	if ctx.Err() != nil {
		return nats.ErrTimeout
	}
	return nil
}

// math100 makes every fault of travel impossible: see its cases.
const math100 = 1 << 30

func (c *fenceConn) PublishMsg(ctx context.Context, m *nats.Msg, _ ...js.PublishOpt) (*js.PubAck, error) {
	c.p.step("publish")
	if c.p.isGone() {
		return nil, errCut
	}
	sent := &nats.Msg{Subject: m.Subject, Header: m.Header, Data: bytes.Clone(m.Data)}
	type answer struct {
		seq uint64
		err error
	}
	answers := make(chan answer, 2)
	err := c.travel(ctx, "publish "+m.Subject, func() {
		seq, err := c.p.w.server.publish(sent)
		answers <- answer{seq, err}
	})
	if err != nil {
		return nil, err
	}
	if a := <-answers; a.err != nil {
		return nil, a.err
	} else {
		return &js.PubAck{Sequence: a.seq}, nil
	}
}

func (c *fenceConn) MaxPayload() int64 { return 1 << 20 }

func (c *fenceConn) RequestWithContext(ctx context.Context, subject string, body []byte) (*nats.Msg, error) {
	c.p.step("read")
	if c.p.isGone() {
		return nil, errCut
	}
	var req struct {
		Seq        uint64
		Next, Last string
	}
	var raw map[string]any
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, err
	}
	req.Next, _ = raw["next_by_subj"].(string)
	req.Last, _ = raw["last_by_subj"].(string)
	if n, ok := raw["seq"].(float64); ok {
		req.Seq = uint64(n)
	}
	answers := make(chan []byte, 2)
	if strings.Contains(subject, ".MSG.DELETE.") {
		err := c.travel(ctx, "remove", func() {
			c.p.w.server.remove(req.Seq)
			answers <- []byte(`{"success":true}`)
		})
		if err != nil {
			return nil, err
		}
		return &nats.Msg{Subject: subject, Data: <-answers}, nil
	}
	err := c.travel(ctx, "read "+req.Next+req.Last, func() {
		answers <- rawMessage(c.p.w.server.get(req.Last, req.Next, req.Seq))
		c.p.w.server.letGo(req.Last, c.p)
	})
	if err != nil {
		return nil, err
	}
	return &nats.Msg{Subject: subject, Data: <-answers}, nil
}

func rawMessage(seq uint64, m *nats.Msg) []byte {
	answer := map[string]any{"error": map[string]any{"code": 404, "err_code": 10037}}
	if m != nil {
		var head bytes.Buffer
		head.WriteString("NATS/1.0\r\n")
		for name, values := range m.Header {
			fmt.Fprintf(&head, "%s: %s\r\n", name, values[0])
		}
		head.WriteString("\r\n")
		answer = map[string]any{"message": map[string]any{"subject": m.Subject, "seq": seq, "hdrs": head.Bytes(), "data": m.Data}}
	}
	doc, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return doc
}

// fenceStore is the control store: one document, by compare-and-swap.
type fenceStore struct {
	w       *fenceWorld
	mu      sync.Mutex
	history [][]byte // the last is what is stored; its length is the revision
}

func newFenceStore(w *fenceWorld) *fenceStore {
	first, err := partitioner.NewTable(fenceSecret, partitioner.SlotsFor(fencePartitions), partitioner.Equal(fencePartitions))
	if err != nil {
		panic(err)
	}
	doc, err := json.Marshal(first)
	if err != nil {
		panic(err)
	}
	return &fenceStore{w: w, history: [][]byte{doc}}
}

func (s *fenceStore) read() ([]byte, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.history[len(s.history)-1]), uint64(len(s.history))
}

func (s *fenceStore) write(doc []byte, revision uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision != uint64(len(s.history)) {
		return 0, control.ErrRevision
	}
	s.history = append(s.history, slices.Clone(doc))
	return uint64(len(s.history)), nil
}

// fenceDocs is the store as one process reaches it.
type fenceDocs struct{ p *fenceProcess }

func (d fenceDocs) Read(ctx context.Context, name string) (doc control.Document, err error) {
	d.p.step("read table")
	answers := make(chan control.Document, 2)
	err = (&fenceConn{p: d.p}).bounded(ctx, "read table", func() {
		value, revision := d.p.w.store.read()
		answers <- control.Document{Name: name, Value: value, Revision: revision}
	})
	if err == nil {
		doc = <-answers
	}
	return doc, err
}

func (d fenceDocs) Write(ctx context.Context, _ string, value []byte, revision uint64) (uint64, error) {
	d.p.step("store table")
	type answer struct {
		revision uint64
		err      error
	}
	answers := make(chan answer, 2)
	value = bytes.Clone(value)
	err := (&fenceConn{p: d.p}).bounded(ctx, "store table", func() {
		next, err := d.p.w.store.write(value, revision)
		answers <- answer{next, err}
	})
	if err != nil {
		return 0, err
	}
	a := <-answers
	return a.revision, a.err
}

// bounded is travel for a client that waits two seconds at most.
func (c *fenceConn) bounded(ctx context.Context, name string, reach func()) error {
	if c.p.isGone() {
		return errCut
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return c.travel(ctx, name, reach)
}
