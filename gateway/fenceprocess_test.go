package gateway

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/jetstream"
	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/internal/budget"
	"github.com/headgate-io/headgate/internal/memdisk"
	"github.com/headgate-io/headgate/partitioner"
)

// start begins a life of the gateway on a disk.
func (w *fenceWorld) start(number int, disk *memdisk.Memory) *fenceProcess {
	r := w.draw("start")
	p := &fenceProcess{w: w, number: number, disk: disk, gone: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	sp, err := spool.New(spool.Config{Stream: fenceStream, SegmentBytes: 4000, Linger: time.Duration(1+r.IntN(30)) * time.Millisecond},
		spool.Deps{Files: slowDisk{spoolDisk{disk}, p}})
	if err != nil {
		panic(err)
	}
	disk.Fail(p.onDisk)
	doc, revision := w.store.read()
	table, err := partitioner.ParseTable(fenceSecret, doc)
	if err != nil {
		panic(err)
	}
	w.say("#%d starts with %v", number, table)
	conn := &fenceConn{p: p}
	backend := jetstream.Over(conn, conn, jetstream.Config{
		Stream: fenceStream, Gateway: fenceGateway, Timeout: 500 * time.Millisecond, Streams: 1, Replicas: 1, Own: !w.external || w.without == claim, OnFull: func(string, int64) {},
	}, w.logger())
	f, err := forward.New(forward.Config{
		Stream: fenceStream, Gateway: fenceGateway, Partitions: fencePartitions, Codec: "s2", FrameEvents: 1 + r.IntN(6), SendTimeout: 2 * time.Second,
	}, backend, forward.Deps{
		Spool: sp, Backlog: sp.Backlog, Room: p.room, Presses: w.presses, Budget: budget.New(int64(64<<10) << r.IntN(8)),
	})
	if err != nil {
		panic(err)
	}
	s := &stream{name: fenceStream, partitioner: partitioner.New(table, nil), forwarder: f, spool: sp, done: make(chan struct{})}
	p.s = s
	p.a = &adaptive{
		stream: s, gateway: fenceGateway, log: w.logger(), names: keyNames{known: map[[2]uint64]partitioner.Named{}},
		stored: &storedTable{docs: fenceDocs{p}, stream: fenceStream, secret: fenceSecret, revision: revision},
	}
	s.adaptive = p.a
	p.a.follow(table.Predecessors())
	p.running.Go(func() { _ = sp.Run(p.ctx) })
	p.running.Go(func() { p.stopped = f.Run(p.ctx) })
	p.running.Go(p.control)
	w.up.Store(p)
	return p
}

// room lets a request pause between its table and its lanes.
func (p *fenceProcess) room() error {
	p.step("hand over")
	p.rest(p.ctx, p.w.delay(p.w.draw("hand over")))
	return p.s.spool.Room()
}

// control changes the table again and again, as a planner that is never content would.
func (p *fenceProcess) control() {
	if t := p.s.partitioner.Table(); t.UnderWay() {
		p.fence(t, nil)
	}
	if p.w.planned {
		p.plan()
		return
	}
	for {
		r := p.w.draw("control")
		if !p.rest(p.ctx, time.Duration(r.Int64N(int64(400*time.Millisecond)))) || p.ctx.Err() != nil || p.w.calm.Load() {
			return
		}
		t := p.s.partitioner.Table()
		if plan, ok := fencePlan(r, t); ok {
			p.step("plan")
			p.begin(t, plan)
			p.w.fenced.Add(1)
			p.w.say("#%d now %v, predecessors %v", p.number, p.s.partitioner.Table(), p.s.partitioner.Table().Predecessors())
		}
	}
}

// fencePlan draws one to three changes that a table can begin.
func fencePlan(r *rand.Rand, t *partitioner.Table) (plan partitioner.Plan, ok bool) {
	for range 20 {
		plan = partitioner.Plan{}
		for range 1 + r.IntN(3) {
			plan.Changes = append(plan.Changes, fenceChange(r, t))
		}
		if next, err := t.Begin(plan); err == nil && next.UnderWay() {
			return plan, true
		}
	}
	return plan, false
}

func fenceChange(r *rand.Rand, t *partitioner.Table) partitioner.Change {
	hi, lo := t.KeyHash(event.AsStream, fenceKey(r.IntN(fenceKeys)))
	at := t.Lookup(hi, lo, r.Uint64())
	c := partitioner.Change{Hi: hi, Lo: lo, Reason: "drawn"}
	var others []int32
	for _, p := range r.Perm(fencePartitions) {
		others = append(others, int32(p))
	}
	switch r.IntN(4) {
	case 0, 1:
		c.Kind, c.Slot, c.Partition, c.To = partitioner.MoveSlot, at.Slot, t.Slot(at.Slot).Partition, others[0]
		if at.Child != event.NoSlot {
			c.Slot, c.Partition = at.Child, at.Partition
		}
	case 2:
		c.Kind, c.Partitions = partitioner.SplitKey, others[:2<<r.IntN(2)]
		if at.Child != event.NoSlot {
			c.Kind, c.Partitions = partitioner.GrowKey, others[:2]
		}
	default:
		c.Kind = partitioner.MergeKey
	}
	return c
}

func fenceKey(n int) []byte { return fmt.Appendf(nil, "key-%d", n) }

// produce hands over the events of one source, a request at a time, each behind the answer to the one before.
func (w *fenceWorld) produce(source int) {
	name := fmt.Sprint("source-", source)
	for n := 0; time.Since(w.began) < faultTime+quietTime; {
		r := w.draw(name)
		<-time.After(time.Duration(r.ExpFloat64() * float64(150*time.Millisecond)))
		p := w.up.Load()
		if p == nil || p.isGone() {
			continue
		}
		b := &event.Batch{Stream: fenceStream, ID: fmt.Sprint(name, n), Producer: []byte(name), NoNewlines: true,
			Ack: []event.Level{event.Accepted, event.Durable, event.Delivered}[r.IntN(3)]}
		for range 1 + r.IntN(4) {
			key := r.IntN(fenceKeys)
			data := fmt.Sprintf("%d %d %d", key, source, n)
			b.Events = append(b.Events, event.Event{Data: []byte(data), Key: fenceKey(key), HasKey: true, Verdict: event.Keep})
			n++
		}
		w.request(p, r, b)
	}
}

// request hands a batch over and notes what its producer was told.
func (w *fenceWorld) request(p *fenceProcess, r *rand.Rand, b *event.Batch) {
	ctx, cancel := context.WithTimeout(p.ctx, time.Second+time.Duration(r.Int64N(int64(8*time.Second))))
	defer cancel()
	w.tell(b, fate{"waits", b.Ack, p})
	end := w.history.call(int(b.Producer[len(b.Producer)-1]-'0'), fenceEvents(b))
	pass := passage{receipt: p.s.forwarder.NewReceipt()}
	err := p.handOver(ctx, b, &pass)
	if err == nil {
		err = pass.receipt.Wait(ctx, b.Ack)
	}
	f := fate{"acked", b.Ack, p}
	var problem *event.Problem
	switch {
	case p.isGone():
		f.state = "unknown"
	case err == nil:
	case errors.As(err, &problem) && problem.Stored == event.StoredDurable:
		f.level = event.Durable
	case errors.As(err, &problem) && problem.Stored == event.StoredUnknown:
		f.state = "unknown"
	default:
		f.state = "rejected"
	}
	w.tell(b, f)
	if f.state == "acked" && f.level == event.Accepted {
		end("unknown") // a crash may take it
	} else {
		end(f.state)
	}
}

func (w *fenceWorld) tell(b *event.Batch, f fate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range b.Events {
		w.fates[string(b.Events[i].Data)] = f
	}
}

// slowDisk is a disk whose syncs of events take their time.
type slowDisk struct {
	spoolDisk
	p *fenceProcess
}

type slowFile struct {
	spool.File
	p *fenceProcess
}

func (d slowDisk) Open(name string, create bool) (spool.File, error) {
	f, err := d.spoolDisk.Open(name, create)
	if err != nil || name == "cursor" || name == "numbers" { // which is locked meanwhile: the clock would stand still
		return f, err
	}
	return slowFile{f, d.p}, err
}

func (f slowFile) Sync() error {
	if f.p.s != nil { // it runs
		f.p.rest(f.p.ctx, f.p.w.delay(f.p.w.draw("sync"))/10)
	}
	return f.File.Sync()
}

// highestVersion is more than that of any table.
const highestVersion = math.MaxUint64 >> 1
