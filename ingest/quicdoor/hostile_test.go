package quicdoor

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/headgate-io/headgate/internal/lossy"
)

// weighing counts the bytes that a socket sends and receives, and hears nothing.
type weighing struct {
	*lossy.Endpoint
	sent, came atomic.Int64
}

func (w *weighing) WriteTo(p []byte, to net.Addr) (int, error) {
	w.sent.Add(int64(len(p)))
	return w.Endpoint.WriteTo(p, to)
}

func (w *weighing) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		k, from, err := w.Endpoint.ReadFrom(p)
		if err != nil {
			return k, from, err
		}
		w.came.Add(int64(k))
	}
}

// Who claims the address of somebody else has at most three times as much sent there as they sent (RFC 9000 section 8.1).
func TestF51Amplification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := open(t, Config{})
		defer n.end()
		w := &weighing{Endpoint: n.endpoint()}
		tr := &quic.Transport{Conn: w}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := tr.Dial(ctx, n.at, trusting, nil); err == nil {
			t.Error("a deaf client is connected")
		}
		<-time.After(time.Minute)
		if sent, came := w.sent.Load(), w.came.Load(); came == 0 || came > 3*sent {
			t.Errorf("for %d bytes %d were sent", sent, came)
		}
		tr.Close()
		w.Close()
	})
}

// A connection on which nothing comes, not even an answer to a question, is forgotten.
func TestF56VanishedClientsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := open(t, Config{Idle: 30 * time.Second})
		defer n.end()
		tr, end := n.client(nil)
		defer end()
		conn, err := tr.Dial(t.Context(), n.at, trusting, &quic.Config{KeepAlivePeriod: 10 * time.Second, MaxIdleTimeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * time.Minute)
		if n.now.Load() != 1 || conn.Context().Err() != nil {
			t.Errorf("a client that is there: %d connections, %v", n.now.Load(), context.Cause(conn.Context()))
		}
		n.Block(true)
		<-time.After(31 * time.Second)
		synctest.Wait()
		if n.now.Load() != 0 {
			t.Errorf("%d connections are left", n.now.Load())
		}
	})
}

// Floods of PATH_CHALLENGE and NEW_CONNECTION_ID, header expansion over QPACK and a panic while paths are probed are mended in quic-go; the
// last one in 0.59.1.
func TestF55VersionOfQUIC(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(string(text), "github.com/quic-go/quic-go v")
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d.", &major, &minor); err != nil || major == 0 && minor < 60 {
		t.Errorf("quic-go %d.%d, %v", major, minor, err)
	}
}

// What the guide says of limits is what they are, it names what QUIC needs, and promises nothing against TCP.
func TestJ09TheGuide(t *testing.T) {
	text, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := strings.Join(strings.Fields(string(text)), " ")
	for _, said := range []string{
		fmt.Sprintf("One has %d streams at most", mostStreams),
		fmt.Sprintf("receives %d KiB ahead of its reader, up to %d MiB", initialConn>>10, mostConn>>20),
		fmt.Sprintf("Above %d handshakes in progress", unproven),
		fmt.Sprintf("receive and send buffers of %d MiB", Wanted>>20),
		"GSO", "UDP_SEGMENT", "on a fast network that loses nothing it is slower", "Measure it on your machines by itself",
	} {
		if !strings.Contains(guide, said) {
			t.Errorf("docs/operate.md does not say %q", said)
		}
	}
	page, err := os.ReadFile("../../bench/README.md")
	if err != nil || !strings.Contains(string(page), "## QUIC\n") || !strings.Contains(string(page), "bare quic-go") {
		t.Errorf("bench/README.md does not measure QUIC by itself: %v", err)
	}
}
