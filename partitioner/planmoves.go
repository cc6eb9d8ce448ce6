package partitioner

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// round is a row of moves that began with an imbalance and goes on until it is gone or nothing helps.
type round struct {
	on      bool
	began   float64 // imbalance when it began
	strikes int
}

// moves is one step of a round.
type moves struct {
	*planning
	floor   []float64 // what a partition keeps whatever moves: its heaviest slot and what is fixed
	level   float64   // load for a weight of 1 when all is as even as the floors allow
	byLoad  [][]int32 // slots of each partition that may move, the heaviest first; made when needed
	pending map[int32]bool
}

// planMoves moves slots from partitions that have too much.
func (n *planning) planMoves() {
	switch {
	case n.loads.weight < ticksPerMove/2 || len(n.table.active) < 2 && len(n.table.active) == len(n.table.partitions):
		return
	case n.cut():
		n.once("mass_loss", "mass_loss: %d of %d partitions went away together, nothing moves", len(n.guards.lost), len(n.table.active))
		return
	case n.now < n.guards.frozen:
		return
	}
	m := &moves{planning: n, byLoad: make([][]int32, len(n.table.partitions)), pending: map[int32]bool{}}
	for _, c := range n.out.Changes { // a slot whose key has just been split or merged is settled first
		if c.Kind == SplitKey || c.Kind == MergeKey || c.Kind == GrowKey {
			m.pending[int32(c.Hi>>n.table.shift)] = true
		}
	}
	n.forgive()
	m.floors()
	if m.fill() || m.empty() || !m.wanted() {
		return
	}
	m.balance()
}

// forgive lets time pass in the budget.
func (n *planning) forgive() {
	l := n.table.Ledger()
	if l.Load == 0 && l.Slots == 0 {
		return
	}
	left := max(0, (n.now-l.At).Seconds()) / budgetPeriod
	own := n.ledger()
	own.Load, own.Slots, own.At = max(0, l.Load-left*budgetLoad), max(0, l.Slots-left*budgetSlots), n.now
}

// spend takes a move of load out of the budget, if it is in it. What is bigger than the whole budget may move when
// nothing else was spent, and uses it up.
func (m *moves) spend(load float64) bool {
	l := m.table.Ledger()
	if m.out.Ledger != nil {
		l = *m.out.Ledger
	}
	total := 0.0
	for _, p := range m.partition {
		total += p
	}
	share, slots := load/max(total, 1), 1/float64(len(m.table.slots))
	if l.Slots+slots > budgetSlots+1e-12 || l.Load+share > budgetLoad && l.Load > 0 {
		return false
	}
	own := m.ledger()
	own.Load, own.Slots, own.At = min(budgetLoad, l.Load+share), min(budgetSlots, l.Slots+slots), m.now
	return true
}

// floors computes how even the load can become by moving slots.
func (m *moves) floors() {
	m.floor = slices.Clone(m.fixed)
	heaviest := make([]float64, len(m.partition))
	for i, s := range m.table.slots {
		heaviest[s.target] = max(heaviest[s.target], m.loads.slot(int32(i)))
	}
	total := 0.0
	for p := range m.floor {
		m.floor[p] += heaviest[p]
		total += m.partition[p]
	}
	byFloor := slices.Clone(m.table.active)
	weight := 0.0
	for _, p := range byFloor {
		weight += m.table.partitions[p].Weight
	}
	slices.SortFunc(byFloor, func(a, b int32) int {
		return cmp.Or(cmp.Compare(m.floor[b]/m.table.partitions[b].Weight, m.floor[a]/m.table.partitions[a].Weight), cmp.Compare(a, b))
	})
	for _, p := range byFloor { // those that cannot get down to the level keep their floor, the others share the rest
		w := m.table.partitions[p].Weight
		if m.floor[p] <= total/weight*w || weight-w <= 0 {
			break
		}
		total, weight = total-m.floor[p], weight-w
	}
	m.level = total / weight
}

// limit is what a partition should have at most, with some tolerance.
func (m *moves) limit(p int32, tolerance float64) float64 {
	return max(m.floor[p], m.level*m.table.partitions[p].Weight) * tolerance
}

// wanted reports whether a round is on, and begins and ends rounds.
func (m *moves) wanted() bool {
	worst, over := 0.0, false
	for _, p := range m.table.active {
		worst = max(worst, m.partition[p]/max(1, m.limit(p, 1)))
		over = over || m.partition[p] > m.limit(p, roundStart) && m.partition[p]-m.limit(p, 1) > sigmas*m.loads.sigma(m.partition[p])
	}
	r := &m.round
	if r.on {
		r.on = worst > roundEnd
		return r.on
	}
	if !over {
		return false
	}
	if r.began > 0 && worst > r.began-progress {
		r.strikes++
	} else {
		r.strikes = 0
	}
	if r.strikes >= strikes {
		m.guards.frozen, *r = m.now+freeze, round{}
		m.note("no_progress: %d rounds of moves left the fullest partition at %.3f of its share, nothing moves for %v", strikes, worst, freeze)
		return false
	}
	r.on, r.began = true, worst
	return true
}

// balance moves slots from the fullest partitions to the emptiest, each the heaviest that fits.
func (m *moves) balance() {
	before := len(m.out.Changes)
	for stuck := map[int32]bool{}; ; {
		from, to := m.fullest(stuck), m.emptiestTo()
		if from == noPartition || to == noPartition {
			break
		}
		fits := min(m.partition[from]-m.limit(from, 1), m.limit(to, roundEnd)-m.partition[to])
		id := m.pick(from, fits)
		if id == noPartition {
			stuck[from] = true
			continue
		}
		if !m.move(id, from, to, fmt.Sprintf("partition %d at %.3f of its share, %d at %.3f", from, m.relative(from), to, m.relative(to))) {
			break
		}
	}
	if len(m.out.Changes) == before {
		m.round.on = m.table.ledger.Load > 0 // waits for the budget, or nothing helps
	}
}

// fullest is the partition that is most over its limit.
func (m *moves) fullest(but map[int32]bool) int32 {
	worst, at := 0.0, noPartition
	for _, p := range m.table.active {
		if over := m.partition[p] - m.limit(p, roundEnd); over > worst && !but[p] && !m.backlog(p, Heavy{}) {
			worst, at = over, p
		}
	}
	return at
}

// emptiestTo is the partition that can take most in relation to its weight.
func (m *moves) emptiestTo() int32 {
	at := noPartition
	for _, p := range m.table.active {
		if !m.guards.closed(p, m.now) && (at == noPartition || m.relative(p) < m.relative(at)) {
			at = p
		}
	}
	return at
}

// pick is the heaviest slot of a partition that has at most load.
func (m *moves) pick(from int32, load float64) int32 {
	if m.byLoad[from] == nil {
		m.byLoad[from] = m.movable(from)
	}
	for _, id := range m.byLoad[from] {
		if l := m.loads.slot(id); l <= load && l > 0 && !m.pending[id] {
			return id
		}
	}
	return noPartition
}

// movable are the slots of a partition that have not moved lately, the heaviest first.
func (m *moves) movable(from int32) []int32 {
	all := []int32{}
	for i, s := range m.table.slots {
		if id := int32(i); s.owner == s.target && int32(s.owner) == from && m.now >= m.rest[id] {
			all = append(all, id)
		}
	}
	slices.SortStableFunc(all, func(a, b int32) int { return cmp.Compare(m.loads.slot(b), m.loads.slot(a)) })
	return all
}

// move plans one, unless the budget is spent.
func (m *moves) move(id, from, to int32, reason string) bool {
	load := 0.0
	if int(id) < len(m.table.slots) {
		load = m.loads.slot(id)
	} else {
		load = m.loads.child(id)
	}
	if !m.spend(load) {
		return false
	}
	m.change(Change{Kind: MoveSlot, Slot: id, Partition: from, To: to, Reason: reason})
	m.pending[id] = true
	m.partition[from] -= load
	m.partition[to] += load
	m.Planner.rest[id] = m.now + restOfSlot
	return true
}

// tidy forgets rests that are over.
func (p *Planner) tidy(now time.Duration) {
	for id, until := range p.rest {
		if now >= until {
			delete(p.rest, id)
		}
	}
}
