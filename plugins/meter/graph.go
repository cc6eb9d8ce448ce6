package meter

// function is what Rewrite finds out about a function of the module before it writes any.
type function struct {
	typ   uint32
	code  []byte   // locals and instructions
	calls []uint32 // own functions it calls, by their place among them, as often as it does
	table bool     // it can be called through a table

	callsTable bool
	loops      bool
	lead       bool   // nothing but openings of blocks comes before its first loop
	outer      uint64 // cost of what is in no loop, without what free callees cost
	weight     uint64 // of its frame, see weigh

	free    bool   // it is not metered: its callers pay its whole cost
	cost    uint64 // of a call of it, for its caller
	counted bool   // it counts in the depth of calls
}

// leadCost is how much code outside of loops may be paid for with each round of a first loop, so that entering the
// function needs no check of its own. Functions of Go guests are one loop around everything.
const leadCost = 16

// weigh says what a frame counts in the depth of calls. Most have a few words; 64 locals more are about 512 bytes.
func weigh(locals uint64) uint64 { return 1 + locals/64 }

// mostUncounted is the weight of frames that may lie on top of one another and not count in the depth.
const mostUncounted = 128

// graph finds cycles of calls, by Tarjan's algorithm (SIAM J. Comput. 1(2), 1972) with a stack of its own, since
// the graph is a guest's. The last node stands for the table: who calls through it may reach all that is in it.
type graph struct {
	functions []function
	tabled    []uint32

	order, low []uint32 // 0: not visited
	open       []bool   // on stack
	stack      []uint32
	visits     []visit
	visited    uint32

	run []uint64 // the same by function
}

type visit struct {
	node uint32
	next int // edge to follow
}

// settle decides for each function whether it is free and whether it counts, callees before callers.
func settle(functions []function) {
	n := len(functions) + 1
	g := &graph{
		functions: functions, run: make([]uint64, n),
		order: make([]uint32, n), low: make([]uint32, n), open: make([]bool, n),
	}
	for i := range functions {
		if functions[i].table {
			g.tabled = append(g.tabled, uint32(i))
		}
	}
	for node := range uint32(n) {
		if g.order[node] == 0 {
			g.visit(node)
		}
	}
}

// edge is where the i-th edge of a node leads; ok is false when there are no more.
func (g *graph) edge(node uint32, i int) (to uint32, ok bool) {
	if int(node) == len(g.functions) {
		if i < len(g.tabled) {
			return g.tabled[i], true
		}
		return 0, false
	}
	f := &g.functions[node]
	switch {
	case i < len(f.calls):
		return f.calls[i], true
	case i == len(f.calls) && f.callsTable:
		return uint32(len(g.functions)), true
	}
	return 0, false
}

func (g *graph) enter(node uint32) {
	g.visited++
	g.order[node], g.low[node] = g.visited, g.visited
	g.stack, g.open[node] = append(g.stack, node), true
	g.visits = append(g.visits, visit{node: node})
}

func (g *graph) visit(root uint32) {
	g.enter(root)
	for len(g.visits) > 0 {
		v := &g.visits[len(g.visits)-1]
		node := v.node
		if to, ok := g.edge(node, v.next); ok {
			v.next++
			if g.order[to] == 0 {
				g.enter(to)
			} else if g.open[to] {
				g.low[node] = min(g.low[node], g.order[to])
			}
			continue
		}
		g.visits = g.visits[:len(g.visits)-1]
		if len(g.visits) > 0 {
			caller := g.visits[len(g.visits)-1].node
			g.low[caller] = min(g.low[caller], g.low[node])
		}
		if g.low[node] == g.order[node] {
			g.component(node)
		}
	}
}

// component takes a set of nodes that all reach one another off the stack: a cycle, or a single node.
func (g *graph) component(root uint32) {
	alone := g.stack[len(g.stack)-1] == root
	for {
		node := g.stack[len(g.stack)-1]
		g.stack, g.open[node] = g.stack[:len(g.stack)-1], false
		g.decide(node, !alone)
		if node == root {
			return
		}
	}
}

// decide settles one node whose callees outside of its cycle are settled.
func (g *graph) decide(node uint32, cycle bool) {
	run, free, cost := uint64(0), !cycle, uint64(0)
	for i := 0; ; i++ {
		to, ok := g.edge(node, i)
		if !ok {
			break
		}
		cycle = cycle || to == node
		run = max(run, g.run[to])
		if int(to) < len(g.functions) {
			free = free && g.functions[to].free
			cost += g.functions[to].cost
		}
	}
	g.run[node] = run
	if int(node) == len(g.functions) {
		return
	}
	f := &g.functions[node]
	f.counted = cycle || run+f.weight > mostUncounted
	if g.run[node] = run + f.weight; f.counted {
		g.run[node] = 0
	}
	f.cost = 1
	if f.free = free && !cycle && !f.loops && !f.callsTable && f.outer+cost <= costFree; f.free {
		f.cost += f.outer + cost
	}
}
