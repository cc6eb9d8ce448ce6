package faults

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// load is what several clients send, and what they were answered.
type load struct {
	seed     uint64
	clients  []*client
	levels   []string // that they ask for
	oneOrder bool     // rows are in the order of keys over partitions too
	again    bool     // what was not answered is sent again, with the same ids, to the next life of the gateway
}

// client sends numbered events, one request at a time, and one twice only where it was not answered.
type client struct {
	of     *load
	seed   uint64
	id     int
	most   int // events a request
	makes  int // every so manieth request goes to a stream that does not exist yet; 0: none
	random *rand.Rand

	next    int // number of the next event
	posts   int
	refused int
	took    map[string][]time.Duration // by the level asked for, of those that were acknowledged
	sent    []span
	open    bool // the last request was not answered
}

// span is the events of one request.
type span struct {
	stream       string
	first, n     int
	level        string // that they have come to for sure: "" when nobody said so
	began, ended time.Time
}

const mainStream = "s"

// newLoad returns clients that each ask for all three levels.
func newLoad(seed uint64, clients, most int) *load {
	l := &load{seed: seed, levels: []string{"accepted", "durable", "delivered"}}
	for id := range clients {
		l.clients = append(l.clients, &client{
			of: l, seed: seed, id: id, most: most, took: map[string][]time.Duration{}, random: rand.New(rand.NewPCG(seed, uint64(id))),
		})
	}
	return l
}

// text is event n of a client, always the same: a JSON object with its id, one of four keys and a filling that
// compression does not make much smaller.
func text(seed uint64, id, n int) string {
	random := rand.New(rand.NewPCG(seed^uint64(id)<<40, uint64(n)))
	filling := make([]byte, random.IntN(120))
	for i := range filling {
		filling[i] = byte(random.Uint32())
	}
	key := keyOf(seed, n)
	if key < 0 {
		return fmt.Sprintf(`{"id":"%d-%d","k":"hot%d","x":"%s"}`, id, n, key, hex.EncodeToString(filling))
	}
	return fmt.Sprintf(`{"id":"%d-%d","k":"key-%d-%d","x":"%s"}`, id, n, id, key, hex.EncodeToString(filling))
}

// hotSeed is in seeds of loads of which most has one key at a time, below zero, that all clients have in common.
const hotSeed = 1 << 62

// keyOf is the key of a client that event n has.
func keyOf(seed uint64, n int) int {
	if seed&hotSeed != 0 && n%10 < 7 {
		return -1 - n>>10
	}
	return n / 7 % 4
}

// run has all clients send until the gateway is gone or quit is closed, and waits for them.
func (l *load) run(url string, quit <-chan struct{}) {
	var all sync.WaitGroup
	for _, c := range l.clients {
		all.Go(func() { c.run(url, quit) })
	}
	all.Wait()
}

func (c *client) run(url string, quit <-chan struct{}) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	for {
		select {
		case <-quit:
			return
		default:
		}
		wait, err := c.post(client, url)
		if err != nil {
			return
		}
		if wait > 0 {
			select {
			case <-quit:
				return
			case <-time.After(wait):
			}
		}
	}
}

// post sends one request; the error is that of a gateway that is gone. It asks for a pause after a refusal.
func (c *client) post(client *http.Client, url string) (pause time.Duration, err error) {
	s := span{stream: mainStream, first: c.next, n: 1 + c.random.IntN(c.most)}
	if c.posts++; c.makes > 0 && c.posts%c.makes == 0 {
		s.stream = fmt.Sprintf("made-%d-%d", c.id, c.posts)
	}
	if last := len(c.sent) - 1; c.open && c.of.again && c.sent[last].stream == mainStream { // others have no ids
		s, c.sent = c.sent[last], c.sent[:last]
	} else {
		c.next += s.n
	}
	level := c.of.levels[c.random.IntN(len(c.of.levels))]
	var body bytes.Buffer
	for n := s.first; n < s.first+s.n; n++ {
		body.WriteString(text(c.seed, c.id, n))
		body.WriteByte('\n')
	}
	s.began = time.Now()
	defer func() {
		s.ended = time.Now()
		c.sent = append(c.sent, s)
		c.open = err != nil
	}()
	req, err := http.NewRequest("POST", url+"/v1/streams/"+s.stream+"/events?ack="+level, &body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	if c.seed&hotSeed != 0 {
		req.Header.Set("Headgate-Source", fmt.Sprint("client-", c.id))
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	var said struct{ Ack, Stored string }
	_ = json.Unmarshal(answer, &said)
	switch {
	case resp.StatusCode == 200 || resp.StatusCode == 202:
		s.level = said.Ack
		c.took[level] = append(c.took[level], time.Since(s.began))
	case said.Stored == "durable": // ack=delivered that took too long
		s.level = said.Stored
	default:
		c.refused++
		pause = 5 * time.Millisecond
	}
	return pause, nil
}

// streams returns the names of all streams that something was sent to.
func (l *load) streams() (all []string) {
	all = append(all, mainStream)
	for _, c := range l.clients {
		for _, s := range c.sent {
			if strings.HasPrefix(s.stream, "made-") {
				all = append(all, s.stream)
			}
		}
	}
	return all
}

// inFlight takes back the acknowledgements of requests that were under way at some time between two.
func (l *load) inFlight(from, to time.Time) {
	for _, c := range l.clients {
		for i := range c.sent {
			if s := &c.sent[i]; s.began.Before(to) && s.ended.After(from) {
				s.level = ""
			}
		}
	}
}

// acked returns how many events were acknowledged as durable or delivered.
func (l *load) acked() (n int) {
	for _, c := range l.clients {
		for _, s := range c.sent {
			if s.level != "" && s.level != "accepted" {
				n += s.n
			}
		}
	}
	return n
}

// waits returns how long acknowledged requests at a level took, the shortest first.
func (l *load) waits(level string) (all []time.Duration) {
	for _, c := range l.clients {
		all = append(all, c.took[level]...)
	}
	slices.Sort(all)
	return all
}

// percentile is 0 when there are none.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)-1)*p/100]
}
