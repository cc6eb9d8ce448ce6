package gateway

import (
	"context"
	"encoding/json"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/partitioner"
)

// ablation is a part of the protocol that a world does without. Each must be missed by the checks, or these check nothing. They
// are in the copies below of the two production functions in which the protocol's steps meet; the copies without any are run too.
type ablation string

const (
	nothing      ablation = ""
	copied       ablation = "nothing, by the copies"
	minVersion   ablation = "minVersion"
	mark         ablation = "the mark"
	parking      ablation = "parking"
	waiting      ablation = "the seal before the commit"
	anotherEpoch ablation = "another epoch after an abandoned move"
	chainCheck   ablation = "the chain check"
	claim        ablation = "the claim of a lane"
)

func (a ablation) production() bool { return a == nothing || a == chainCheck || a == claim }

func (p *fenceProcess) handOver(ctx context.Context, b *event.Batch, pass *passage) error {
	if p.w.without.production() {
		return p.s.forward(ctx, b, pass)
	}
	return p.forwardCopy(ctx, b, pass)
}

func (p *fenceProcess) begin(t *partitioner.Table, plan partitioner.Plan) {
	if p.w.without.production() {
		p.a.begin(p.ctx, t, plan)
		return
	}
	begun, err := t.Begin(plan)
	if err == nil {
		err = p.a.stored.write(p.ctx, begun)
	}
	if err != nil {
		if newer := overtaking(err, t.Version()); newer != nil {
			p.takeOverCopy(newer)
		}
		return
	}
	p.s.partitioner.Swap(begun)
	p.fenceCopy(begun)
}

func (p *fenceProcess) fence(begun *partitioner.Table, changes []partitioner.Change) {
	if p.w.without.production() {
		p.a.fence(p.ctx, begun, changes)
		return
	}
	p.fenceCopy(begun)
}

// forwardCopy is stream.forward.
func (p *fenceProcess) forwardCopy(ctx context.Context, b *event.Batch, pass *passage) error {
	var which []int32
	for {
		p.s.partitioner.Assign(b, which)
		version := b.TableVersion
		if p.w.without == parking {
			unpark(p.s.partitioner.Table(), b)
		}
		if p.w.without == minVersion {
			b.TableVersion = highestVersion
		}
		stale, err := p.s.forwarder.Forward(ctx, b, pass.receipt, which)
		b.TableVersion = version
		if err != nil || len(stale) == 0 {
			if err != nil {
				_ = pass.receipt.Wait(ctx, event.Accepted)
			}
			return err
		}
		p.s.awaitTable(ctx, b, stale)
		which = stale
	}
}

// unpark lets events follow the table although it holds them back.
func unpark(t *partitioner.Table, b *event.Batch) {
	for i := range b.Events {
		if e := &b.Events[i]; e.Partition == event.Parked {
			_, _, at := t.Locate(b.Class, e.Key, b.Producer)
			e.Partition = at.Partition
		}
	}
}

// fenceCopy is adaptive.fence.
func (p *fenceProcess) fenceCopy(begun *partitioner.Table) {
	a := p.a
	f := partitioner.NewFence(a.gateway, begun, p.w.clock())
	switch p.w.without {
	case waiting:
		ended, cancel := context.WithCancel(p.ctx)
		cancel()
		for _, l := range f.Leaves() {
			_, _ = p.s.forwarder.Seal(ended, l, f.Version())
			f.Sealed(l, 0)
		}
	case mark:
		sealed := partitioner.NewFence(a.gateway, begun, p.w.clock())
		a.seal(p.ctx, sealed)
		if sealed.Next(p.w.clock()) != partitioner.Finish {
			f.Failed()
			break
		}
		for _, l := range f.Leaves() {
			f.Sealed(l, 0)
		}
	default:
		a.seal(p.ctx, f)
	}
	f.Unnamed(a.allUnnamed(begun))
	step := f.Next(p.w.clock())
	if p.ctx.Err() != nil || step == partitioner.Wait {
		return
	}
	end, err := f.End(step)
	if err == nil && step == partitioner.Abandon && p.w.without == anotherEpoch {
		end, err = sameEpochs(begun, end)
	}
	if err != nil {
		panic(err)
	}
	stored := a.insist(p.ctx, end)
	if stored == nil {
		return
	}
	if stored != end {
		p.takeOverCopy(stored)
		return
	}
	if step == partitioner.Finish {
		a.follow(f.Marks())
	}
	p.s.partitioner.Swap(end)
}

// takeOverCopy is adaptive.takeOver.
func (p *fenceProcess) takeOverCopy(t *partitioner.Table) {
	p.a.follow(t.Predecessors())
	p.s.partitioner.Swap(t)
	if t.UnderWay() {
		p.fenceCopy(t)
	}
}

// sameEpochs is a table that was abandoned, with the epochs that it had before.
func sameEpochs(begun, end *partitioner.Table) (*partitioner.Table, error) {
	var was, is map[string]json.RawMessage
	for t, to := range map[*partitioner.Table]*map[string]json.RawMessage{begun: &was, end: &is} {
		doc, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(doc, to); err != nil {
			return nil, err
		}
	}
	is["epochs"] = was["epochs"]
	doc, err := json.Marshal(is)
	if err != nil {
		return nil, err
	}
	return partitioner.ParseTable(fenceSecret, doc)
}
