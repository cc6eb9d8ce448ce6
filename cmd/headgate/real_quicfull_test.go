package main

import (
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/sdk/client"
	"github.com/headgate-io/headgate/sdk/session"
)

// With a dead backend and a full spool a session's client is told, gets no more credit, and waits; over HTTP it is 503. When the
// backend is back all goes on, and nothing is lost, repeated or out of order.
func TestB05SessionWaitsForRoomInTheSpool(t *testing.T) {
	n := newNode(t)
	n.down.Store(10)
	p := startGateway(t, t.TempDir(), n.settings(append(onQUIC, "--set", "spool.max_bytes=1MiB")...)...)
	full := make(chan string, 1)
	c, err := client.New(client.Config{Address: strings.TrimPrefix(p.quicURL(), "https://"), Stream: "s", Framing: session.JSON, InFlight: 256 << 10,
		TLS: &tls.Config{InsecureSkipVerify: true}, Notice: func(code, detail string) {
			if code == "connection" { // it goes on on another one
				return
			}
			select {
			case full <- code + ": " + detail:
			default:
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	const all = 600
	var batches []*client.Batch
	sent := make(chan error, 1)
	go func() {
		random := rand.NewChaCha8([32]byte{1})
		for i := range all {
			noise := make([]byte, 5<<10)
			random.Read(noise)
			b, err := c.Send(t.Context(), fmt.Appendf(nil, `{"k":"x","n":%d,"noise":"%x"}`, i, noise))
			if err != nil {
				sent <- err
				return
			}
			batches = append(batches, b)
		}
		sent <- nil
	}()
	for range 3 { // it is said each time anew
		if said := <-full; !strings.HasPrefix(said, "spool_full: ") {
			t.Fatalf("%s\n%s", said, p.log)
		}
	}
	select {
	case err := <-sent:
		t.Fatalf("the client does not wait: %v", err)
	default:
	}
	if status, answer := p.post("s", `{"k":"y"}`+"\n"); status != 503 || !strings.Contains(answer, "spool_full") {
		t.Errorf("over HTTP: %d %s", status, answer)
	}
	n.down.Store(0)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, b := range batches {
		if r, err := b.Wait(t.Context()); err != nil || r.Accepted != 1 {
			t.Errorf("%d: %+v %v", i, r, err)
		}
	}
	if code := p.terminate(); code != 0 { // all is delivered
		t.Errorf("exit %d; log:\n%s", code, p.log)
	}
	rows, _ := n.rows(t)
	for i, r := range rows {
		if !strings.HasPrefix(r.Data, fmt.Sprintf(`{"k":"x","n":%d,`, i)) {
			t.Fatalf("row %d is %.40s", i, r.Data)
		}
	}
	if len(rows) != all {
		t.Errorf("%d of %d events arrived", len(rows), all)
	}
}
