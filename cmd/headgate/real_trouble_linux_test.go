package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// rest waits between from and to, drawn, and reports false when it is over.
func rest(over <-chan struct{}, from, to time.Duration) bool {
	select {
	case <-over:
		return false
	case <-time.After(from + rand.N(to-from)):
		return true
	}
}

// HEADGATE_LIVE=n: the table changes all the time while the gateway is stopped, its backend away, its disk full, its stream redefined.
func TestLiveInTrouble(t *testing.T) {
	total, err := strconv.ParseInt(os.Getenv("HEADGATE_LIVE"), 10, 64)
	if err != nil {
		t.Skip("make test-live runs it")
	}
	total /= 7
	t.Run("SIGTERM", func(t *testing.T) {
		l := newLive(t, "source", 60, total)
		playLive(l, 0, func(over <-chan struct{}) {
			for rest(over, 300*time.Millisecond, 4*time.Second) {
				l.note()
				if code := l.now.Load().terminate(); code != 0 {
					t.Errorf("exit %d\n%s", code, l.now.Load().log)
				}
				l.start()
			}
		})
	})
	t.Run("the backend is away", func(t *testing.T) {
		server := newNATS(t, "max_payload: 8MB")
		server.start()
		l := newLive(t, "source", 60, total)
		l.settings = []string{"--set", fmt.Sprintf("backends={bus: {jetstream: {url: %q, max_bytes: 1GiB}}}", server.url())}
		l.more = ", backend: bus"
		playLive(l, 1, func(over <-chan struct{}) {
			for rest(over, time.Second, 8*time.Second) { // nothing is split while a lane is more than a second behind
				server.kill()
				rest(over, 200*time.Millisecond, 7*time.Second)
				server.start()
			}
		})
		t.Log("the targets above hold while the backend confirms. When it ends in the middle of a split, the events of that key wait until all " +
			"before them is confirmed, or until the split is abandoned after 5 s: then 5000 ms or +Inf parked is right. Later none begins before it is back: late onsets")
	})
	t.Run("the disk is full", func(t *testing.T) {
		l := newLive(t, "source", 60, total)
		l.data = smallDisk(t)
		l.settings = []string{"--set", "memory=32MiB", "--set", "backends={local: {jetstream: {embedded: true, max_bytes: 200MiB}}}", "--set", "spool.max_bytes=100MiB"}
		playLive(l, 1, func(over <-chan struct{}) {
			for rest(over, 2*time.Second, 4*time.Second) {
				free := fillUp(t, l.data)
				rest(over, 500*time.Millisecond, 6*time.Second)
				free()
			}
		})
	})
	t.Run("plugins are swapped", func(t *testing.T) {
		b, err := product()
		if err != nil {
			t.Fatal(err)
		}
		l := newLive(t, "source", 60, total)
		playLive(l, 0, func(over <-chan struct{}) {
			p := l.now.Load()
			p.headgate(0, "plugin", "push", "accesslog", b.accesslog)
			for n := 0; rest(over, 100*time.Millisecond, 600*time.Millisecond); n++ {
				if n%3 < 2 { // its key is what the stream's own would be
					p.headgate(0, "plugin", "activate", "--stream", "s", "accesslog", "--config", fmt.Sprintf(`{"drop_status_from":%d}`, 500+n))
				} else {
					p.headgate(0, "plugin", "deactivate", "--stream", "s", "accesslog")
				}
			}
		})
	})
}
