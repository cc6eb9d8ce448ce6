package main

import (
	"crypto/tls"
	"fmt"
	"testing"

	"github.com/headgate-io/headgate/internal/freeport"
	"github.com/headgate-io/headgate/sdk/client"
	"github.com/headgate-io/headgate/sdk/session"
)

// Once packets have become larger than 1,280 bytes, because the path took them, it takes such no more, and says nothing: the session
// goes on, and no event is lost or stored twice.
func TestF48MTUBlackHole(t *testing.T) {
	at := freeport.UDP(t)
	p := startGateway(t, t.TempDir(), "--set", "streams={s: {partitions: 1}}", "--set", "quic.listen="+at, "--set", "quic.idle_timeout=2s")
	way := openProxy(t, at, faults{}, 0)
	c, err := client.New(client.Config{Address: way.at(), Stream: "s", Framing: session.JSON, TLS: &tls.Config{InsecureSkipVerify: true}})
	if err != nil {
		t.Fatal(err)
	}
	sent, tight := 0, 0
	for tight < 100 {
		b, err := c.Send(t.Context(), fmt.Appendf(nil, "%4000d", sent))
		if err != nil {
			t.Fatal(err)
		}
		if sent++; tight == 0 { // one after the other, so that there is time to see what the path takes
			if r, err := b.Wait(t.Context()); err != nil || r.Accepted+r.Duplicates+r.Settled != 1 {
				t.Fatalf("%+v %v", r, err)
			}
			if sent > 5000 {
				t.Skip("packets do not become larger here")
			}
		}
		if way.large.Load() >= 20 {
			way.most.Store(smallest)
			tight++
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows := p.tail("s")
	for i, row := range rows {
		var n int
		if _, err := fmt.Sscan(row.Data, &n); err != nil || n != i {
			t.Fatalf("event %d is %s %v", i, row.Data, err)
		}
	}
	if len(rows) != sent {
		t.Errorf("%d events are stored, want %d", len(rows), sent)
	}
	t.Logf("%d events, of them %d through the hole; %d datagrams were large", sent, tight, way.large.Load())
}
