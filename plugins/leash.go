package plugins

import (
	"context"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/headgate-io/headgate/plugins/meter"
)

// leash is how long one call of a guest may take. The guest's metered code comes by after each slice of fuel.
type leash struct {
	limit time.Duration // of the call
	rest  time.Duration // of the request, 0 for none

	of context.Context // of the request: when it has ended nobody wants the result; nil for none

	began  time.Time
	last   time.Duration // since then, when the guest came by last
	spent  time.Duration // of limit
	slices int           // of fuel
	debt   int64         // slices that were used up beyond the last one, by something large like filling all memory
	setUp  time.Duration // in all calls that set the guest up
	ready  bool          // they are over
	late   bool          // the call ended because the request had no more time

	seats *seats // of all guests that compute for long, nil for none
	seated
}

// mostBetween is the most that counts of the time between two visits, for each slice of fuel. One is used up in a fraction of it;
// what is longer is a machine that did something else meanwhile, which is no guest's fault.
const mostBetween = 10 * time.Millisecond

// mostSlices is how much fuel a call may use whatever the clock says: 2^40 units, of which a second is worth 2^34 at
// the most as a rule.
const mostSlices = 1 << 20

// initTime is what a guest has for each call that sets it up, unless Config says otherwise.
const initTime = 2 * time.Second

func (l *leash) start() {
	if !l.ready {
		l.setUp += l.cost()
	}
	l.began = time.Now()
	l.last, l.spent, l.slices, l.debt, l.late, l.seated = 0, 0, 0, 0, false, seated{}
}

// cost is how long the guest has computed since the call began, without what the machine did meanwhile.
func (l *leash) cost() time.Duration {
	return l.spent + min(time.Since(l.began)-l.last, mostBetween)
}

// settled ends the time that counts for setting the guest up.
func (l *leash) settled() {
	l.setUp += l.cost()
	l.ready = true
}

// halted is what ends a call of a guest that has used up what it may.
type halted struct{ kind failure }

// Error says what was used up.
func (h halted) Error() string {
	switch h.kind {
	case deadline:
		return "it took too long"
	case outOfFuel:
		return "it executed too many instructions"
	}
	return "its calls are nested too deep"
}

// check panics when the guest has used up its time, or nobody waits for what it computes.
func (l *leash) check() {
	now := time.Since(l.began)
	l.spent += min(now-l.last, mostBetween*time.Duration(1+l.debt))
	l.worked += min(now-l.last, mostWorked*time.Duration(1+l.debt))
	l.last, l.debt = now, 0
	l.late = l.rest != 0 && now > l.rest || l.of != nil && l.of.Err() != nil
	if l.late || l.spent > l.limit {
		panic(halted{deadline})
	}
	if l.worked >= seatFrom && l.seats != nil && !l.place() {
		l.late = true
		panic(halted{deadline})
	}
}

// yieldFunction is the import of metered modules: no module may import it by itself. Read only.
var yieldFunction = hostFunction{"I", "I", hostYield}

// hostYield is called with no fuel left, or with calls nested too deep. As behind every call of the host the time is
// checked then.
func hostYield(g *guest, _ api.Memory, stack []uint64) {
	if int64(stack[0]) == meter.Deep {
		panic(halted{stackFull})
	}
	if g.slices++; g.slices > mostSlices {
		panic(halted{outOfFuel})
	}
	g.debt = -int64(stack[0]) / meter.Slice
	stack[0] = meter.Slice
}
