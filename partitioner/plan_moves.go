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
	first   bool    // it is of a table that has just been made
	since   time.Duration
	moved   int // slots since
	strikes int
}

// band is between which loads of the fullest partition, in relation to its limit, a round of moves goes on, and what a
// partition may have after it got a slot.
type band struct{ start, end, fit float64 }

// band: where nothing has an order, a move makes nobody wait.
func (n *planning) band() band {
	if !n.ordered() {
		return band{looseStart, looseEnd, looseFit}
	}
	return band{roundStart, roundEnd, roundFit}
}

// moves is one step of a round.
type moves struct {
	*planning
	floor                 []float64 // what a partition keeps at least: the heaviest slot or child that it has
	level                 float64   // load for a weight of 1 when all is as even as the floors allow
	byLoad                [][]unit  // of each partition what may move, the heaviest first; made when needed
	pending               map[int32]bool
	spentLoad, spentSlots float64
	resized               int                // moves of this step that fill and empty partitions
	goes                  map[int32]int32    // where the children go that move now, + 1
	changed               map[[2]uint64]bool // keys that are split, grown or merged now
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
	m := &moves{planning: n, byLoad: make([][]unit, len(n.table.partitions)), pending: map[int32]bool{},
		goes: map[int32]int32{}, changed: map[[2]uint64]bool{}}
	for _, c := range n.out.Changes { // a slot whose key has just been split or merged is settled first
		if c.Kind == SplitKey || c.Kind == MergeKey || c.Kind == GrowKey {
			m.pending[int32(c.Hi>>n.table.shift)] = true
			m.changed[[2]uint64{c.Hi, c.Lo}] = true
		}
	}
	m.spentLoad, m.spentSlots = n.forgiven()
	m.floors()
	if m.fill() || m.empty() || !m.wanted() {
		return
	}
	m.balance()
}

// forgiven is the ledger's budget after the time that has passed. It is written down only when something is spent: a
// table does not change because time passes.
func (n *planning) forgiven() (load, slots float64) {
	l := n.table.Ledger()
	passed := max(0, (n.now-l.At).Seconds()) / budgetPeriod
	return max(0, l.Load-passed*budgetLoad), max(0, l.Slots-passed*budgetSlots)
}

// spend takes a move of load out of the budget, if it is in it, for a part of its price where cost is less than 1. What is bigger than the whole budget may move when
// nothing else was spent, and uses it up.
func (m *moves) spend(load, cost float64) bool {
	total := 0.0
	for _, p := range m.partition {
		total += p
	}
	share, slots := cost*load/max(total, 1)/m.credit(), cost/float64(len(m.table.slots))/m.credit()
	if m.spentSlots+slots > budgetSlots+1e-12 || m.spentLoad+share > budgetLoad && m.spentLoad > 0 {
		return false
	}
	m.spentLoad, m.spentSlots = min(budgetLoad, m.spentLoad+share), min(budgetSlots, m.spentSlots+slots)
	own := m.ledger()
	own.Load, own.Slots, own.At = m.spentLoad, m.spentSlots, m.now
	return true
}

// credit is how many times the budget may be spent: more in the first round of a table that was made before anything was known of
// its keys, and in which nobody has got used to a place yet.
func (m *moves) credit() float64 {
	if r := &m.round; r.on && r.first && m.now-r.since < firstRound {
		return firstCredit
	}
	return 1
}

// floors computes how even the load can become by moves: a partition keeps at least the heaviest that it has.
func (m *moves) floors() {
	m.floor = make([]float64, len(m.partition))
	for i, s := range m.table.slots {
		m.floor[s.target] = max(m.floor[s.target], m.loads.slot(int32(i)))
	}
	for i := range m.table.splits.all {
		s := &m.table.splits.all[i]
		for _, c := range s.children {
			if !s.Spread {
				m.floor[c.target] = max(m.floor[c.target], m.loads.child(c.id))
			}
		}
	}
	total := 0.0
	for _, l := range m.partition {
		total += l
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
		l := m.stays(p)
		worst = max(worst, l/max(1, m.limit(p, 1)))
		over = over || l > busy*m.capacity && // else it hurts nobody
			l > m.limit(p, m.band().start) && l-m.limit(p, 1) > sigmas*m.loads.sigma(l)
	}
	r := &m.round
	if r.on {
		r.on = worst > m.band().end
		return r.on
	}
	if !over {
		return false
	}
	if r.moved > 0 && worst > r.began-progress {
		r.strikes++
	} else if r.moved > 0 {
		r.strikes = 0
	}
	if r.strikes >= strikes {
		m.guards.frozen, *r = m.now+freeze, round{}
		m.note("no_progress: %d rounds of moves left the fullest partition at %.3f of its share, nothing moves for %v", strikes, worst, freeze)
		return false
	}
	r.on, r.began, r.moved = true, worst, 0
	r.first, r.since = m.table.ledger.At == 0 && m.Planner.ticks <= firstTicks, m.now
	return true
}

// balance moves slots from the fullest partitions to the emptiest, each the heaviest that fits.
func (m *moves) balance() {
	before := len(m.out.Changes)
	for stuck := map[int32]bool{}; ; {
		from, to := m.fullest(stuck), m.emptiestTo()
		if from == noPartition || to == noPartition || from == to {
			break
		}
		over := m.stays(from) - m.limit(from, 1)
		id := m.pick(from, to, min(over, m.limit(to, m.band().end)-m.solid[to]))
		if id == noPartition { // slots are a sixty-fourth of a partition or so: they need not fit exactly
			id = m.pick(from, to, min(over, m.limit(to, m.band().fit)-m.solid[to]))
		}
		if id == noPartition {
			stuck[from] = true
			continue
		}
		if !m.move(id, from, to, fmt.Sprintf("partition %d at %.3f of its share, %d at %.3f", from, m.relative(from), to, m.relative(to))) {
			break
		}
	}
	if moved := len(m.out.Changes) - before; moved > 0 {
		m.round.moved += moved
	} else if m.spentLoad == 0 && m.spentSlots == 0 {
		m.round.on = false // it does not wait for the budget: nothing helps
	}
}

// stays is the load of a partition that moves have to look after. What spread keys bring flows elsewhere, or their reach is made
// wider, as long as that is possible.
func (m *moves) stays(p int32) float64 {
	if m.room > 0 && m.s.MaxFanout == 0 {
		return m.solid[p]
	}
	return m.partition[p]
}

// fullest is, of the partitions that are over their limit, the one with most for its weight.
func (m *moves) fullest(but map[int32]bool) int32 {
	worst, at := 0.0, noPartition
	for _, p := range m.table.active {
		l := m.stays(p)
		over, full := l > m.limit(p, m.band().end)+m.loads.sigma(l), l/m.table.partitions[p].Weight
		if over && full > worst && !but[p] && !m.backlog(p, Heavy{}) {
			worst, at = full, p
		}
	}
	return at
}

// emptiestTo is the partition that can take most in relation to its weight.
func (m *moves) emptiestTo() int32 {
	at := noPartition
	for _, p := range m.table.active {
		if !m.guards.closed(p, m.now) && (at == noPartition || m.byRoom(p, at) < 0) {
			at = p
		}
	}
	return at
}

// unit is what moves as one: a slot, or a child of a key that is split by source.
type unit struct {
	id   int32
	load float64
	key  *split // of a child
}

// pick is the heaviest unit of a partition that has at most load and may go to another one.
func (m *moves) pick(from, to int32, load float64) int32 {
	if m.byLoad[from] == nil {
		m.byLoad[from] = m.movable(from)
	}
	for _, u := range m.byLoad[from] {
		if u.load <= load && u.load > 0 && !m.pending[u.id] && (u.key == nil || m.alone(u.key, to)) {
			return u.id
		}
	}
	return noPartition
}

// alone reports whether a key has no child on partition p.
func (m *moves) alone(s *split, p int32) bool {
	return !slices.ContainsFunc(s.children, func(c child) bool {
		return int32(c.owner) == p || int32(c.target) == p || m.goes[c.id] == p+1
	})
}

// movable are the units of a partition that have not moved lately, the heaviest first.
func (m *moves) movable(from int32) []unit {
	all := []unit{}
	for i, s := range m.table.slots {
		if id := int32(i); s.owner == s.target && int32(s.owner) == from && m.now >= m.rest[id] {
			all = append(all, unit{id: id, load: m.loads.slot(id)})
		}
	}
	for i := range m.table.splits.all {
		s := &m.table.splits.all[i]
		for _, c := range s.children {
			if !s.Spread && c.owner == c.target && int32(c.owner) == from && m.now >= m.rest[c.id] && !m.changed[[2]uint64{s.hi, s.lo}] {
				all = append(all, unit{c.id, m.loads.child(c.id), s})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b unit) int { return cmp.Compare(b.load, a.load) })
	return all
}

// move plans one, unless the budget is spent.
func (m *moves) move(id, from, to int32, reason string) bool {
	if !m.spend(m.loadOf(id), 1) {
		return false
	}
	m.shift(Change{Kind: MoveSlot, Slot: id, Partition: from, To: to, Reason: reason})
	m.settle()
	return true
}

func (m *moves) loadOf(id int32) float64 {
	if int(id) < len(m.table.slots) {
		return m.loads.slot(id)
	}
	return m.loads.child(id)
}

// shift plans a move that is paid for.
func (m *moves) shift(c Change) {
	load := m.loadOf(c.Slot)
	m.change(c)
	m.pending[c.Slot], m.goes[c.Slot] = true, c.To+1
	for _, all := range [][]float64{m.partition, m.solid} {
		all[c.Partition] -= load
		all[c.To] += load
	}
	m.Planner.rest[c.Slot] = m.now + restOfSlot
}

// tidy forgets rests that are over.
func (p *Planner) tidy(now time.Duration) {
	for id, until := range p.rest {
		if now >= until {
			delete(p.rest, id)
		}
	}
}
