package ingest

import (
	"context"
	"crypto/tls"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
)

// A header that does not end holds its connection no longer than a client that sends nothing: F38 for headers over HTTP/3.
func TestF38SlowHeadersOverHTTP3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		at := g.Endpoint(host(9))
		defer at.Close()
		tr := &quic.Transport{Conn: at}
		defer tr.Close()
		conn, err := tr.Dial(t.Context(), g.at.LocalAddr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocolH3}}, &quic.Config{KeepAlivePeriod: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 3 {
			str, err := conn.OpenStreamSync(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				str.Write([]byte{1, 0x40, 0x64}) // HEADERS of 100 bytes
				for {
					select {
					case <-conn.Context().Done():
						return
					case <-time.After(7 * time.Second):
						str.Write([]byte{0})
					}
				}
			}()
		}
		select {
		case <-conn.Context().Done():
		case <-time.After(10 * time.Minute):
			conn.CloseWithError(0, "")
		}
		if took, most := time.Since(began), g.h3.server.IdleTimeout; took < most-time.Second || took > most+5*time.Second {
			t.Errorf("closed after %v, %v is the limit: %v", took, most, context.Cause(conn.Context()))
		}
	})
}
