package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/internal/freeport"
	"github.com/headgate-io/headgate/sdk/client"
	"github.com/headgate-io/headgate/sdk/session"
)

func TestSendInASession(t *testing.T) {
	p := startGateway(t, t.TempDir(), onQUIC...)
	file := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(file, []byte("{\"n\":1}\n\n{\r\n{\"n\":2}\r\n{\"n\":3}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, batch := range []string{"1", "500"} {
		out, errs := p.headgate(1, "send", "--proto", "quic", "--quic-url", p.quicURL(), "--stream", "web"+batch, "--batch", batch, file)
		if !strings.Contains(out, `"sent":4,"accepted":3,"filtered":0,"rejected":1,"duplicates":0,"deadlettered":0`) || !strings.Contains(errs, "events.ndjson:3: malformed_json") {
			t.Errorf("batches of %s: %s%s", batch, out, errs)
		}
		if rows := p.tail("web" + batch); len(rows) != 3 || rows[0].Data != `{"n":1}` && rows[1].Data != `{"n":1}` && rows[2].Data != `{"n":1}` {
			t.Errorf("stored %+v", rows)
		}
	}
	if _, errs := p.headgate(1, "send", "--proto", "quic", "--quic-url", p.quicURL(), "--stream", "NO", file); !strings.Contains(errs, "bad_stream_name") {
		t.Errorf("%s", errs)
	}
	if _, errs := p.headgate(2, "send", "--proto", "quic", "--quic-url", p.quicURL(), "--stream", "web", "--type", "text/plain", file); !strings.Contains(errs, "use --proto h3") {
		t.Errorf("%s", errs)
	}
}

// Without UDP, a session's events go over HTTP.
func TestF60SendFallsBackToHTTP(t *testing.T) {
	p := startGateway(t, t.TempDir(), "--set", "quic.listen=none")
	file := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(file, []byte("1\n2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs := p.headgate(0, "send", "--proto", "quic", "--quic-url", "https://127.0.0.1:9", "--stream", "web", file)
	if !strings.Contains(out, `"sent":2,"accepted":2`) || strings.Count(errs, "sending over HTTP at "+p.http) != 1 {
		t.Errorf("%s%s", out, errs)
	}
}

// F1, F58 of sessions: the gateway is killed in the middle, more than once. Nothing that was sent is lost, order is kept, and
// nothing is stored twice, also of what was in flight at a kill.
func TestF58SessionOverKills(t *testing.T) {
	data := t.TempDir()
	at := freeport.UDP(t)
	settings := []string{"--set", "quic.listen=" + at, "--set", "streams={s: {partitions: 1}}"}
	p := startGateway(t, data, settings...)
	c, err := client.New(client.Config{Address: at, Stream: "s", Framing: session.JSON, TLS: &tls.Config{InsecureSkipVerify: true}, InFlight: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	const batches, each = 1500, 5
	var all []*client.Batch
	for i := range batches {
		if i > 0 && i%400 == 0 {
			p.kill()
			p = startGateway(t, data, settings...)
		}
		var events [][]byte
		for k := range each {
			events = append(events, fmt.Append(nil, i*each+k))
		}
		b, err := c.Send(t.Context(), events...)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	accepted, duplicates := 0, 0
	for _, b := range all {
		r, err := b.Wait(t.Context())
		// Of what was settled longer than 64 frames before a kill, and whose RESULT was on its way, only that is known: how much it is
		// depends on how fast who is.
		if err != nil || r.Accepted+r.Duplicates+r.Settled != each {
			t.Errorf("%d: %+v %v", b.First, r, err)
		}
		accepted, duplicates = accepted+r.Accepted, duplicates+r.Duplicates
	}
	rows := p.tail("s")
	for i, r := range rows {
		if n, err := strconv.Atoi(r.Data); err != nil || n != i {
			t.Fatalf("stored event %d is %s", i, r.Data)
		}
	}
	if len(rows) != batches*each {
		t.Errorf("%d events are stored, want %d", len(rows), batches*each)
	}
	t.Logf("%d accepted, %d known from before a kill, %d stored twice", accepted, duplicates, len(rows)-batches*each)
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d; log:\n%s", code, p.log)
	}
}
