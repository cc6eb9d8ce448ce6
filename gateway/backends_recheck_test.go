package gateway

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	js "github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/internal/settings"
)

// N02, F13: the stream that holds what was confirmed is deleted. With a tail all of it is sent again under its numbers, when the
// connection comes back, at the next run, or at a start; without one it is counted that it is lost.
func TestN02WhatTheBackendLostIsSentAgain(t *testing.T) {
	for _, tail := range []string{"on", "off"} {
		cfg := zero(t)
		cfg.Backends[config.LocalBackend].JetStream.Tail = tail
		cfg.Spool.Tail.Age = settings.Duration(time.Hour)
		cfg.Streams = map[string]config.Stream{"web": {Partitions: config.Partitions{Max: 1}}}
		in := start(t, cfg)
		sent := 0
		post := func() {
			t.Helper()
			in.want(200, `"accepted":1`, "web?ack=delivered", fmt.Sprintf(`{"n":%d}`, sent))
			sent++
		}
		remove := func() {
			t.Helper()
			// The server empties what it removes behind its answer, and until then leaves what it removes next where it is, to be found
			// by the next stream of that name.
			in.until("what was removed before has gone", func() bool {
				all, err := filepath.Glob(filepath.Join(cfg.Data, "jetstream", "jetstream", "*", "streams", ".*"))
				return err == nil && len(all) == 0
			})
			nc, err := in.stores.events.Connect("side")
			if err != nil {
				t.Fatal(err)
			}
			side, err := js.New(nc, js.WithDefaultTimeout(time.Minute))
			if err == nil {
				err = side.DeleteStream(t.Context(), "HEADGATE_web")
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		sums := func() (lost, again uint64) { return (*in.streams.Load())["web"].forwarder.Lost() }
		for range 10 {
			post()
		}
		remove()
		post()
		if lost, again := sums(); tail == "on" && (lost != 0 || again != 10) || tail == "off" && (lost != 10 || again != 0) {
			t.Errorf("tail %s: %v events are lost, %v were sent again", tail, lost, again)
		}
		remove()
		in.recheck(config.LocalBackend)
		in.until("the idle lane finds out", func() bool {
			lost, again := sums()
			return tail == "on" && again == 10+11 || tail == "off" && lost == 11
		})
		remove()
		in.end()
		in = start(t, cfg)
		in.until("a start finds out", func() bool { lost, again := sums(); return tail == "off" || lost+again == 11 })
		post()
		var numbers []uint64
		for _, r := range in.rows("web") {
			numbers = append(numbers, r.Number)
		}
		if !slices.IsSorted(numbers) || tail == "on" && len(numbers) != 12 || numbers[len(numbers)-1] != 12 {
			t.Errorf("tail %s: %v", tail, numbers)
		}
		in.end()
	}
}
