package main

import (
	"bufio"
	"crypto/tls"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"

	"github.com/headgate-io/headgate/sdk/session"
)

// A session at accepted is told when its events are durable.
func TestAcceptedSessionIsToldOfDurability(t *testing.T) {
	p := startGateway(t, t.TempDir(), onQUIC...)
	conn, err := quic.DialAddr(t.Context(), strings.TrimPrefix(p.quicURL(), "https://"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{session.Protocol}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseWithError(0, "")
	str, err := conn.OpenStreamSync(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	frames := (&session.Hello{Version: session.Version, Stream: "s", Session: "a", Level: session.Accepted}).Append(nil)
	for first := range uint64(3) {
		frames = append(session.AppendEventsHead(frames, session.EventsHead{First: first + 1, Count: 1, Framing: session.Lines}, 2), "1\n"...)
	}
	if _, err := str.Write(frames); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(str)
	for {
		kind, length, err := session.ReadHead(in)
		if err != nil {
			t.Fatal(err)
		}
		payload, err := session.ReadControl(in, length, nil)
		if err != nil {
			t.Fatal(err)
		}
		var a session.Ack
		switch {
		case kind == session.TypeError:
			t.Fatalf("%q", payload)
		case kind != session.TypeAck:
			continue
		}
		if err := a.Parse(payload); err != nil {
			t.Fatal(err)
		}
		if a.Level != session.Durable {
			continue
		}
		if a.UpTo > 3 {
			t.Fatalf("durable up to %d of 3", a.UpTo)
		}
		if a.UpTo == 3 {
			break
		}
	}
	p.until("a reader sees them", func() bool { return len(p.tail("s")) == 3 })
}
