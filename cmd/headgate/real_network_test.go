package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/freeport"
	"github.com/headgate-io/headgate/sdk/client"
	"github.com/headgate-io/headgate/sdk/session"
)

// roughRun is a run of sessions over a bad network to a gateway that is killed.
type roughRun struct {
	sessions, each int           // how many there are, and events in a batch
	batches        int           // of a session; 0: as many as go into span
	span           time.Duration // how long it takes; 0: as long as it needs
	pause          time.Duration // behind a batch
	inFlight       int           // bytes of a session
	kills          int
	faults         faults
	after          int           // datagrams after which an address changes
	every          time.Duration // after which all addresses change
}

// rough is one session: what was acknowledged, and what the client had to say.
type rough struct {
	batches    []*client.Batch
	reconnects atomic.Int64
	accepted   int
	duplicates int
	settled    int
	acked      int
}

// The whole: 5 % of datagrams are lost, others late, twice or damaged, each client comes from another address every 2 s, and the
// gateway is killed three times. HEADGATE_NETWORK is for how many seconds (make test-network).
func TestF48F49F58SessionsOverABadNetworkAndKills(t *testing.T) {
	seconds, err := strconv.Atoi(os.Getenv("HEADGATE_NETWORK"))
	if err != nil {
		t.Skip("HEADGATE_NETWORK says for how many seconds")
	}
	bad := faults{lost: 0.05, late: 0.05, twice: 0.02, corrupt: 0.01}
	if os.Getenv("HEADGATE_NETEM") != "" { // the kernel does it
		bad = faults{}
	}
	roughRun{sessions: 4, each: 10, span: time.Duration(seconds) * time.Second, pause: 10 * time.Millisecond, inFlight: 16 << 10, kills: 3, faults: bad, every: 2 * time.Second}.check(t)
}

// The same in a network namespace of its own, where the kernel loses and delays what goes over loopback.
func TestF48SessionsUnderNetem(t *testing.T) {
	if os.Getenv("HEADGATE_NETWORK") == "" || os.Getenv("HEADGATE_NETEM") != "" {
		t.Skip("HEADGATE_NETWORK says for how many seconds")
	}
	const missing = 77
	cmd := exec.Command("unshare", "-n", "sh", "-c", `ip link set lo up && tc qdisc add dev lo root netem loss 2.5% delay 2ms 1ms duplicate 1% reorder 5% || exit 77
exec "$0" -test.run='^TestF48F49F58SessionsOverABadNetworkAndKills$' -test.count=1 -test.v`, os.Args[0]) // each datagram passes loopback twice
	cmd.Env = append(os.Environ(), "HEADGATE_NETEM=1")
	out, err := cmd.CombinedOutput()
	if failed, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || failed.ExitCode() == missing || failed.ExitCode() == 1 && !strings.Contains(string(out), "--- FAIL")) {
		t.Skipf("there is no netem here: it needs root, iproute2 and the kernel's sch_netem: %v %s", err, out)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// A short form, which depends on counts alone.
func TestF48F49F58SessionsOverABadNetwork(t *testing.T) {
	roughRun{sessions: 2, each: 5, batches: 120, inFlight: 2 << 10, kills: 1, faults: faults{lost: 0.05, late: 0.05, twice: 0.05, corrupt: 0.02}, after: 20}.check(t)
}

// check runs it, and compares what was acknowledged with what the backend has.
func (r roughRun) check(t *testing.T) {
	data, at := t.TempDir(), freeport.UDP(t)
	args := []string{"--set", "streams={s: {partitions: 4}}", "--set", "quic.listen=" + at}
	p := startGateway(t, data, args...)
	way := openProxy(t, at, r.faults, r.after)
	over := make(chan struct{})
	var changing sync.WaitGroup
	if r.every > 0 {
		changing.Go(func() {
			tick := time.NewTicker(r.every)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					way.change()
				case <-over:
					return
				}
			}
		})
	}
	progress := make(chan struct{}, 1) // a batch of the first session was sent
	all := make([]*rough, r.sessions)
	var sending sync.WaitGroup
	for i := range all {
		all[i] = new(rough)
		sending.Go(func() { r.send(t, all[i], i, way.at(), progress) })
	}
	done := make(chan struct{})
	go func() { sending.Wait(); close(done) }()
	began, killed := time.Now(), 0
	for n := 0; killed < r.kills; {
		due := false
		select {
		case <-progress:
			n++
			due = r.span == 0 && n >= r.batches*(killed+1)/(r.kills+1) || r.span > 0 && time.Since(began) >= r.span*time.Duration(killed+1)/time.Duration(r.kills+1)
		case <-done:
			t.Fatalf("all was sent before kill %d", killed+1)
		}
		if due {
			p.kill()
			p = startGateway(t, data, args...)
			killed++
		}
	}
	for ended := false; !ended; {
		select {
		case <-progress:
		case <-done:
			ended = true
		}
	}
	close(over)
	changing.Wait()
	r.compare(t, all, p.tail("s"))
	t.Logf("%v, killed %d times", way, killed)
	if r.span > 0 && (r.faults.lost > 0 && (way.lost.Load() == 0 || way.damaged.Load() == 0) || way.changes.Load() == 0 || way.followed.Load() <= int64(r.sessions)) {
		t.Errorf("the network was too good: %v", way)
	}
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d; log:\n%s", code, p.log)
	}
}

// send sends the batches of a session and waits for their outcome.
func (r roughRun) send(t *testing.T, s *rough, number int, at string, progress chan<- struct{}) {
	c, err := client.New(client.Config{Address: at, Stream: "s", Framing: session.JSON, TLS: &tls.Config{InsecureSkipVerify: true}, InFlight: r.inFlight,
		Fields: []session.Field{{Name: "Headgate-Key", Value: fmt.Sprint(number)}}, Notice: func(code, _ string) {
			if code == "connection" {
				s.reconnects.Add(1)
			}
		}})
	if err != nil {
		t.Error(err)
		return
	}
	for n, began := 0, time.Now(); r.span == 0 && n < r.batches || r.span > 0 && time.Since(began) < r.span; n++ {
		var events [][]byte
		for k := range r.each {
			events = append(events, fmt.Appendf(nil, "[%d,%d]", number, n*r.each+k))
		}
		b, err := c.Send(t.Context(), events...)
		if err != nil {
			t.Errorf("session %d: %v", number, err)
			break
		}
		s.batches = append(s.batches, b)
		if number == 0 {
			progress <- struct{}{}
		}
		if r.pause > 0 {
			<-time.After(r.pause)
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("session %d: %v", number, err)
	}
	for _, b := range s.batches {
		res, err := b.Wait(t.Context())
		if err != nil || res.Accepted+res.Duplicates+res.Settled != r.each {
			t.Errorf("session %d, batch at %d: %+v %v", number, b.First, res, err)
			continue
		}
		s.acked += r.each
		s.accepted, s.duplicates, s.settled = s.accepted+res.Accepted, s.duplicates+res.Duplicates, s.settled+res.Settled
	}
}

// compare counts what is lost, stored twice, or out of its order.
func (r roughRun) compare(t *testing.T, all []*rough, rows []row) {
	next, seen := make([]int, len(all)), make([]map[int]bool, len(all))
	dup, order := 0, 0
	for i := range seen {
		seen[i] = map[int]bool{}
	}
	for _, row := range rows {
		var i, n int
		if _, err := fmt.Sscanf(row.Data, "[%d,%d]", &i, &n); err != nil || i >= len(all) {
			t.Fatalf("stored %s", row.Data)
		}
		switch {
		case seen[i][n]:
			dup++
		case n != next[i]:
			order++
		}
		seen[i][n], next[i] = true, n+1
	}
	acked, lost, accepted, duplicates, settled, reconnects := 0, 0, 0, 0, 0, int64(0)
	for i, s := range all {
		acked, accepted, duplicates, settled, reconnects = acked+s.acked, accepted+s.accepted, duplicates+s.duplicates, settled+s.settled, reconnects+s.reconnects.Load()
		for _, b := range s.batches {
			for n := int(b.First) - 1; n < int(b.First+b.Count)-1; n++ {
				if !seen[i][n] {
					lost++
				}
			}
		}
	}
	t.Logf("acked %d (%d accepted, %d known from before a kill, %d settled), lost %d, dup %d, order %d, reconnects %d", acked, accepted, duplicates, settled, lost, dup, order, reconnects)
	if lost > 0 || dup > 0 || order > 0 || acked == 0 {
		t.Errorf("of %d acknowledged events %d are lost, %d stored twice, %d out of order", acked, lost, dup, order)
	}
}
