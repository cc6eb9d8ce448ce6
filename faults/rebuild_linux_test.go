package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// F31: an embedded store of half a million small messages without its indexes is read anew at a start, within the memory that the start
// says that it needs.
func TestF31AStoreIsIndexedAnew(t *testing.T) {
	long(t)
	const messages = 500_000
	b := newBed(t, result{Fault: "F31", What: "a store of 500,000 messages without its index", Cycles: 1})
	b.with("streams={s: {partitions: 1}}")
	g := start(t, b.data, "", b.settings...)
	if status, answer, _ := g.post(mainStream, "ack=delivered", `{"id":"x"}`); status != 200 {
		t.Fatal(status, answer)
	}
	if code := g.stop(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	id, err := os.ReadFile(filepath.Join(b.data, "id"))
	if err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(b.data, "jetstream")
	fill(t, store, "headgate.s.0."+strings.TrimSpace(string(id)), messages)
	indexes, err := filepath.Glob(filepath.Join(store, "jetstream", "*", "streams", "*", "msgs", "index.db"))
	if err != nil || len(indexes) == 0 {
		t.Fatal("there is no index", err)
	}
	for _, path := range indexes {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	g = start(t, b.data, "", b.settings...)
	peak, needs := g.peak(t), regexp.MustCompile(`"needs":"(\d+)MiB"`).FindStringSubmatch(g.log.String())
	if needs == nil {
		t.Fatalf("it does not say what it needs; log:\n%s", g.log)
	}
	most, _ := strconv.Atoi(needs[1])
	if peak > most<<20 {
		t.Errorf("%d MiB at the peak, %d are what it said", peak>>20, most)
	}
	b.Recover, b.Note = g.recovery.Seconds(), fmt.Sprintf("peak %d MiB resident, of %d that it says it needs", peak>>20, most)
	g.kill()
	say(t, b.result)
}

// fill adds messages to a store that nobody uses, many at a time and without a sync for each.
func fill(t *testing.T, store, subject string, messages int) {
	t.Helper()
	ns, err := server.NewServer(&server.Options{ServerName: "fill", DontListen: true, NoSigs: true, JetStream: true, StoreDir: store, JetStreamMaxStore: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	defer func() { ns.Shutdown(); ns.WaitForShutdown() }()
	if !ns.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	nc, err := nats.Connect("", nats.InProcessServer(ns))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := nc.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	body := make([]byte, 60)
	for n := 0; n < messages; {
		pending := make([]nats.PubAckFuture, 0, 1000)
		for range cap(pending) {
			f, err := js.PublishAsync(subject, body)
			if err != nil {
				t.Fatal(err)
			}
			pending = append(pending, f)
		}
		for _, f := range pending {
			select {
			case <-f.Ok():
			case err := <-f.Err():
				t.Fatal(err)
			}
		}
		n += len(pending)
	}
}
