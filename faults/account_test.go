package faults

import (
	"encoding/json"
	"fmt"
	"testing"
)

// account compares what was acknowledged with what there is.
type account struct {
	Sent     int `json:"sent"`
	Acked    int `json:"acked"` // at durable or delivered
	Accepted int `json:"accepted"`
	Found    int `json:"found"`
	Gone     int `json:"accepted_gone"` // acknowledged at accepted, which promises nothing, and not there
	Lost     int `json:"lost"`          // acknowledged at durable or delivered, and not there
	Phantom  int `json:"phantom"`       // there and never sent
	Dup      int `json:"dup"`
	Corrupt  int `json:"corrupt"` // other bytes than were sent
	Order    int `json:"order"`   // behind a later one of the same client and key in the same partition

	examples []string // of what is wrong
}

func (a *account) wrong(count *int, format string, args ...any) {
	if *count++; len(a.examples) < 10 {
		a.examples = append(a.examples, fmt.Sprintf(format, args...))
	}
}

func (a *account) ok() bool { return a.Lost+a.Phantom+a.Dup+a.Corrupt+a.Order == 0 }

// place is where events of one client keep their order: rows of several partitions have one order only where they come so.
type place struct {
	client    int
	key       int
	stream    string
	partition int
}

// check fills the account from rows, which are those of one partition and gateway in their order.
func (l *load) check(rows []row) *account {
	a := &account{Found: len(rows)}
	there := make([]map[int]string, len(l.clients)) // by client and number: in which stream
	for id := range there {
		there[id] = map[int]string{}
	}
	last, number := map[place]int{}, map[string]uint64{}
	for _, r := range rows {
		lane := fmt.Sprint(r.Stream, r.Partition, r.Gateway)
		if before, ok := number[lane]; ok && r.Number <= before {
			a.wrong(&a.Order, "%s: number %d behind %d", lane, r.Number, before)
		}
		number[lane] = r.Number
		id, n, ok := identify(r.Data)
		switch {
		case !ok:
			a.wrong(&a.Corrupt, "%.100q is no event", r.Data)
			continue
		case id < 0 || id >= len(l.clients) || n < 0 || n >= l.clients[id].next:
			a.wrong(&a.Phantom, "%.100q was never sent", r.Data)
			continue
		case r.Data != text(l.seed, id, n):
			a.wrong(&a.Corrupt, "%.100q is not what was sent", r.Data)
			continue
		}
		if _, twice := there[id][n]; twice {
			a.wrong(&a.Dup, "event %d-%d is there twice", id, n)
			continue
		}
		there[id][n] = r.Stream
		p := place{id, keyOf(l.seed, n), r.Stream, r.Partition}
		if l.oneOrder {
			p.partition = 0
		}
		if before, ok := last[p]; ok && n < before {
			a.wrong(&a.Order, "event %d-%d behind %d", id, n, before)
		}
		last[p] = max(n, last[p])
	}
	l.compare(a, there)
	return a
}

// compare counts what was acknowledged.
func (l *load) compare(a *account, there []map[int]string) {
	for id, c := range l.clients {
		for _, s := range c.sent {
			a.Sent += s.n
			for n := s.first; n < s.first+s.n; n++ {
				stream, found := there[id][n]
				if found && stream != s.stream {
					a.wrong(&a.Phantom, "event %d-%d is in stream %s, it was sent to %s", id, n, stream, s.stream)
				}
				switch {
				case s.level == "":
				case s.level == "accepted":
					a.Accepted++
					if !found {
						a.Gone++
					}
				default:
					a.Acked++
					if !found {
						a.wrong(&a.Lost, "event %d-%d of stream %s was acknowledged as %s and is lost", id, n, s.stream, s.level)
					}
				}
			}
		}
	}
}

// identify returns client and number of an event.
func identify(data string) (id, n int, ok bool) {
	var e struct{ ID string }
	if json.Unmarshal([]byte(data), &e) != nil {
		return 0, 0, false
	}
	k, err := fmt.Sscanf(e.ID, "%d-%d", &id, &n)
	return id, n, err == nil && k == 2
}

// The account finds each kind of fault: without this, a harness that finds nothing proves nothing.
func TestTheAccountFindsWhatIsWrong(t *testing.T) {
	l := newLoad(7, 3, 1)
	var rows []row
	for id, c := range l.clients {
		c.next = 5
		for n := range 5 {
			c.sent = append(c.sent, span{stream: mainStream, first: n, n: 1, level: l.levels[id]})
			rows = append(rows, row{Stream: mainStream, Partition: id, Number: uint64(n + 1), Data: text(7, id, n)})
		}
	}
	changed := func(change func(rows []row) []row) *account { return l.check(change(append([]row(nil), rows...))) }
	good := changed(func(rows []row) []row { return rows })
	if !good.ok() || good.Acked != 10 || good.Accepted != 5 || good.Found != 15 {
		t.Errorf("nothing is wrong: %+v", good)
	}
	for what, c := range map[string]struct {
		change func(rows []row) []row
		want   account
	}{
		"accepted gone":  {func(rows []row) []row { return rows[1:] }, account{Gone: 1}},
		"durable lost":   {func(rows []row) []row { return append(rows[:5:5], rows[6:]...) }, account{Lost: 1}},
		"delivered lost": {func(rows []row) []row { return rows[:13] }, account{Lost: 2}},
		"phantom": {func(rows []row) []row {
			return append(rows, row{Stream: mainStream, Number: 9, Data: text(7, 1, 5)})
		}, account{Phantom: 1}},
		"another stream": {func(rows []row) []row { rows[4].Stream = "t"; return rows }, account{Phantom: 1}},
		"twice":          {func(rows []row) []row { rows = append(rows, rows[14]); rows[15].Number = 6; return rows }, account{Dup: 1}},
		"a bit":          {func(rows []row) []row { rows[0].Data = spoiled(rows[0].Data); return rows }, account{Corrupt: 1, Gone: 1}},
		"no JSON":        {func(rows []row) []row { rows[9].Data = "{"; return rows }, account{Corrupt: 1, Lost: 1}},
		"order": {func(rows []row) []row {
			rows[6].Data, rows[7].Data = rows[7].Data, rows[6].Data
			return rows
		}, account{Order: 1}},
		"numbers": {func(rows []row) []row { rows[12].Number = 2; return rows }, account{Order: 1}},
	} {
		got := changed(c.change)
		c.want.Sent, c.want.Acked, c.want.Accepted, c.want.Found = 15, 10, 5, got.Found
		got.examples = nil
		if fmt.Sprint(*got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %+v, want %+v", what, *got, c.want)
		}
	}
}

// spoiled changes the last letter of the filling.
func spoiled(data string) string { return data[:len(data)-3] + "_" + data[len(data)-2:] }
