package gateway

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/partitioner"
	"github.com/headgate-io/headgate/sdk/consume"
)

func (w *fenceWorld) clock() time.Duration { return sinceEpoch(time.Now()) }

// check compares what is stored with what producers were told, once everything has ended.
func (w *fenceWorld) check() {
	w.checkTables()
	lanes := w.checkLanes()
	stored := w.newOrderCheck("in the order of the server")
	owner := map[string]uint32{} // of a slot's epoch
	for _, m := range w.server.log {
		w.decode(m, func(e consume.Event) error {
			slot := e.Slot
			if e.Child >= 0 {
				slot = e.Child
			}
			of := fmt.Sprintf("slot %d in epoch %d", slot, e.Epoch)
			if p, ok := owner[of]; ok && p != e.Partition {
				w.complain("%s has events in the partitions %d and %d", of, p, e.Partition)
			}
			owner[of] = e.Partition
			return stored.add(e)
		})
	}
	w.checkFates(stored.seen)
	w.checkReader(lanes)
}

func (w *fenceWorld) decode(m *nats.Msg, each func(consume.Event) error) {
	if m.Header.Get("Headgate-Marker") != "" {
		return
	}
	if err := consume.Decode(m.Data, m.Header.Get("Content-Encoding"), m.Header.Get("Content-Type"), each); err != nil {
		w.complain("a message can't be decoded: %v", err)
	}
}

// checkFates: what was acknowledged is there once, what was refused is not, nothing is there twice, and everything was answered.
func (w *fenceWorld) checkFates(seen map[string]int) {
	for _, data := range slices.Sorted(maps.Keys(w.fates)) {
		f, n := w.fates[data], seen[data]
		switch {
		case n > 1:
			w.complain("event %s is stored %d times", data, n)
		case f.state == "waits":
			w.complain("event %s was never answered", data)
		case f.state == "rejected" && n > 0:
			w.complain("event %s was rejected, and is stored", data)
		case f.state == "acked" && n == 0 && (f.level > event.Accepted || !f.process.isGone()):
			w.complain("event %s was acknowledged (%v) and is lost", data, f.level)
		}
		delete(seen, data)
	}
	for data := range seen {
		w.complain("event %s was never sent", data)
	}
}

// checkLanes: the numbers of each lane have no gap, unless a power cut took events that nobody was promised and left word that
// they may have been sent: then their numbers are not given again. It returns the runs of each.
func (w *fenceWorld) checkLanes() map[string][]*nats.Msg {
	lanes, last := map[string][]*nats.Msg{}, map[string]uint64{}
	for _, m := range w.server.log {
		if m.Header.Get("Headgate-Marker") != "" {
			continue
		}
		lanes[m.Subject] = append(lanes[m.Subject], m)
		first, _ := strconv.ParseUint(m.Header.Get(forward.HeaderFirst), 10, 64)
		if next := last[m.Subject] + 1; first < next || first > next && !w.cut.Load() {
			w.complain("%s: event %d follows event %d", m.Subject, first, last[m.Subject])
		}
		last[m.Subject], _ = strconv.ParseUint(m.Header.Get(forward.HeaderLast), 10, 64)
	}
	return lanes
}

// checkReader: who reads the partitions one after the other, from whichever on, can restore the order.
func (w *fenceWorld) checkReader(lanes map[string][]*nats.Msg) {
	read := w.newOrderCheck("as a reader of the partitions restores it")
	defer func() {
		name := ""
		if w.without == nothing {
			name = fmt.Sprint("fence-", w.seed)
		}
		if w.refused = w.history.check(read.logs, name); w.refused != "" {
			w.complain("a reader's log is %s", w.refused)
		}
	}()
	order := consume.NewOrder(consume.OrderConfig{}, read.add)
	all := slices.Sorted(maps.Keys(lanes))
	r := rand.New(rand.NewPCG(w.seed, 1))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	events := 0
	for _, subject := range all {
		for _, m := range lanes[subject] {
			w.decode(m, func(consume.Event) error { events++; return nil })
			if err := order.Add(m.Data, m.Header.Get("Content-Encoding"), m.Header.Get("Content-Type")); err != nil {
				w.complain("reader: %v", err)
			}
		}
	}
	if blocked := order.Blocked(); len(blocked) > 0 {
		w.complain("a reader waits for ever: %v", blocked)
	}
}

// orderCheck looks at the events of each key and source.
type orderCheck struct {
	w    *fenceWorld
	what string
	last map[string]int
	seen map[string]int
	logs map[string][]int
}

func (w *fenceWorld) newOrderCheck(what string) *orderCheck {
	return &orderCheck{w, what, map[string]int{}, map[string]int{}, map[string][]int{}}
}

func (o *orderCheck) add(e consume.Event) error {
	var key, source, n int
	data := string(e.Data)
	if _, err := fmt.Sscan(data, &key, &source, &n); err != nil {
		return err
	}
	o.seen[data]++
	of := fmt.Sprintf("key %d of source %d", key, source)
	if before, ok := o.last[of]; ok && n < before {
		o.w.complain("%s, %s: event %d comes behind %d (partition %d, slot %d, child %d, epoch %d)", o.what, of, n, before, e.Partition, e.Slot, e.Child, e.Epoch)
	}
	o.last[of] = n
	o.logs[of] = append(o.logs[of], n)
	return nil
}

// checkTables: versions grow, an epoch has one owner and is left for good, children never come back.
func (w *fenceWorld) checkTables() {
	type state struct {
		at     partitioner.Place
		moving bool
	}
	was, gone, version := map[int32]state{}, map[int32]bool{}, uint64(0)
	var before *partitioner.Table
	for _, doc := range w.store.history {
		t, err := partitioner.ParseTable(fenceSecret, doc)
		if err != nil {
			w.complain("stored: %v", err)
			return
		}
		if t.Version() <= version {
			w.complain("table %d follows table %d", t.Version(), version)
		}
		version = t.Version()
		if before != nil {
			for _, c := range before.Pending() {
				if at := before.Lookup(c.Hi, c.Lo, 0); at == t.Lookup(c.Hi, c.Lo, 0) {
					w.complain("table %d: the key of %v goes on at %+v, where it was", version, c, at)
				}
			}
		}
		before = t
		is, moving := map[int32]state{}, t.Moving()
		for n := range int32(t.Slots()) {
			is[n] = state{t.Slot(n), slices.Contains(moving, n)}
		}
		for _, s := range t.Splits() {
			for _, c := range s.Children {
				is[c.Child] = state{c, slices.Contains(moving, c.Child)}
			}
		}
		for id, now := range is {
			before, ok := was[id]
			switch {
			case gone[id]:
				w.complain("table %d: child %d came back", version, id)
			case !ok:
			case now.at.Epoch < before.at.Epoch, now.at.Epoch == before.at.Epoch && (now.at.Partition != before.at.Partition || before.moving && !now.moving):
				w.complain("table %d: slot %d was %+v and is %+v", version, id, before, now)
			}
		}
		for id := range was {
			_, still := is[id]
			gone[id] = gone[id] || !still
		}
		was = is
	}
}
