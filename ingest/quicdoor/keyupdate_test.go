package quicdoor

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"

	"github.com/headgate-io/headgate/internal/lossy"
)

// keys counts the updates of a connection's keys.
type keys struct{ updates atomic.Int64 }

func (k *keys) AddProducer() qlogwriter.Recorder { return k }
func (k *keys) Close() error                     { return nil }
func (k *keys) RecordEvent(e qlogwriter.Event) {
	if u, ok := e.(qlog.KeyUpdated); ok && u.Trigger != qlog.KeyUpdateTLS {
		k.updates.Add(1)
	}
}

// Keys are updated behind a hundred packets, while packets are lost, late, repeated and damaged, and everything arrives.
func TestF57KeyUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := open(t, Config{})
		defer n.end()
		n.Set(lossy.Faults{Lost: 0.05, Late: 0.05, Twice: 0.05, Corrupt: 0.02})
		tr, end := n.client(nil)
		defer end()
		k := new(keys)
		conn, err := tr.Dial(t.Context(), n.at, trusting, &quic.Config{HandshakeIdleTimeout: time.Minute,
			Tracer: func(context.Context, bool, quic.ConnectionID) qlogwriter.Trace { return k }})
		if err != nil {
			t.Fatal(err)
		}
		sent := strings.Repeat("0123456789abcdef", 1<<15) // 400 packets and more
		for range 2 {
			str, err := conn.OpenStreamSync(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			go func() { io.WriteString(str, sent); str.Close() }()
			if got, err := io.ReadAll(str); err != nil || string(got) != sent {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
		}
		if k.updates.Load() == 0 {
			t.Error("no key was updated")
		}
		conn.CloseWithError(0, "")
	})
}
