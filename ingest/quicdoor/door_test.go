package quicdoor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/headgate-io/headgate/internal/lossy"
)

// visitors counts, and refuses when there are as many as it may have.
type visitors struct{ now, most atomic.Int64 }

func (v *visitors) Enter(netip.Addr) error {
	if v.now.Add(1) > v.most.Load() {
		v.now.Add(-1)
		return errors.New("too many")
	}
	return nil
}

func (v *visitors) Leave(netip.Addr) { v.now.Add(-1) }

func secret(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}}
}

const protocol = "test"

// network is a simulated one with a door on it.
type network struct {
	t *testing.T
	*lossy.Network
	*Door
	visitors
	at   net.Addr
	next byte
	ran  chan error
}

// open opens a door that echoes streams. It is used inside a bubble of synctest.
func open(t *testing.T, cfg Config) *network {
	t.Helper()
	n := &network{t: t, Network: lossy.New(1, 5*time.Millisecond), ran: make(chan error, 1)}
	n.most.Store(1 << 30)
	cfg.Conn, cfg.TLS = n.endpoint(), secret(t)
	n.Door = New(cfg, map[string]Handler{protocol: echo}, &n.visitors, slog.New(slog.DiscardHandler))
	var err error
	if n.at, err = n.Listen(); err != nil {
		t.Fatal(err)
	}
	go func() { n.ran <- n.Run() }()
	return n
}

// end closes everything and checks that nobody is counted any more.
func (n *network) end() {
	n.Shut()
	n.Door.Close()
	if err := <-n.ran; err != nil {
		n.t.Errorf("Run: %v", err)
	}
	synctest.Wait()
	if now, shaking, windows := n.now.Load(), n.shaking.Load(), n.windows.Load(); now != 0 || shaking != 0 || windows != 0 {
		n.t.Errorf("%d connections, %d handshakes and %d bytes of windows are still counted", now, shaking, windows)
	}
}

func (n *network) endpoint() *lossy.Endpoint {
	n.next++
	return n.Endpoint(fmt.Sprintf("10.0.0.%d:443", n.next))
}

// client returns a transport at an address of its own; what its socket receives is for see, which may drop it.
func (n *network) client(see func(packet []byte) (drop bool)) (*quic.Transport, func()) {
	conn := n.endpoint()
	tr := &quic.Transport{Conn: &seen{conn, see}}
	return tr, func() { tr.Close(); conn.Close() }
}

type seen struct {
	*lossy.Endpoint
	see func([]byte) bool
}

func (s *seen) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		k, from, err := s.Endpoint.ReadFrom(p)
		if err != nil || s.see == nil || !s.see(p[:k]) {
			return k, from, err
		}
	}
}

var trusting = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}, ServerName: "x"}

func echo(conn *quic.Conn) {
	for {
		str, err := conn.AcceptStream(context.Background())
		if err != nil {
			return
		}
		go func() { io.Copy(str, str); str.Close() }()
	}
}

func TestStreamsAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := open(t, Config{})
		defer n.end()
		tr, end := n.client(nil)
		defer end()
		conn, err := tr.Dial(t.Context(), n.at, trusting, nil)
		if err != nil {
			t.Fatal(err)
		}
		str, err := conn.OpenStreamSync(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sent := strings.Repeat("0123456789abcdef", 1<<15) // more than the first window
		go func() { io.WriteString(str, sent); str.Close() }()
		if got, err := io.ReadAll(str); err != nil || string(got) != sent {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
		if n.windows.Load() == 0 {
			t.Error("the window has not grown")
		}
		conn.CloseWithError(0, "")
	})
}

// Nothing else is agreed on, and so refused in the handshake.
func TestOtherProtocolsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := open(t, Config{})
		defer n.end()
		tr, end := n.client(nil)
		defer end()
		other := trusting.Clone()
		other.NextProtos = []string{"other"}
		var refused *quic.TransportError
		if _, err := tr.Dial(t.Context(), n.at, other, nil); !errors.As(err, &refused) {
			t.Errorf("got %v", err)
		}
	})
}

// While many handshakes are half open, who wants another has to show that its address is its own; those that stay half
// open are forgotten.
func TestF52J07HalfOpenHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := open(t, Config{})
		defer n.end()
		var retries atomic.Int64
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		deaf, end := n.client(func(packet []byte) bool {
			if packet[0]&0xf0 == 0xf0 { // RFC 9000 section 17.2.5
				retries.Add(1)
			}
			return true
		})
		defer end()
		for range unproven {
			go deaf.Dial(ctx, n.at, trusting, nil)
		}
		synctest.Wait()
		<-time.After(100 * time.Millisecond)
		if got := n.shaking.Load(); got != unproven || retries.Load() != 0 {
			t.Errorf("%d handshakes are half open, and %d were asked to retry", got, retries.Load())
		}
		for range 1000 {
			go deaf.Dial(ctx, n.at, trusting, nil)
		}
		<-time.After(100 * time.Millisecond)
		if got := n.shaking.Load(); got != unproven || retries.Load() == 0 {
			t.Errorf("%d handshakes are half open, and %d were asked to retry", got, retries.Load())
		}
		honest, gone := n.client(nil) // who can answer is served meanwhile
		defer gone()
		conn, err := honest.Dial(t.Context(), n.at, trusting, nil)
		if err != nil {
			t.Errorf("a client that proves its address: %v", err)
		} else {
			conn.CloseWithError(0, "")
		}
		<-time.After(time.Minute)
		if got := n.shaking.Load(); got != 0 || n.now.Load() != 0 {
			t.Errorf("after a minute %d handshakes and %d connections are left", got, n.now.Load())
		}
	})
}

// A client may open so many streams, which cost nothing until something is sent on them; another one waits until one ends.
func TestF53J06StreamsOverTheLimitWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := open(t, Config{})
		defer n.end()
		tr, end := n.client(nil)
		defer end()
		conn, err := tr.Dial(t.Context(), n.at, trusting, nil)
		if err != nil {
			t.Fatal(err)
		}
		var all []*quic.Stream
		for {
			str, err := conn.OpenStream()
			if err != nil {
				break
			}
			all = append(all, str)
		}
		if len(all) != mostStreams {
			t.Errorf("%d streams", len(all))
		}
		for _, str := range all {
			io.WriteString(str, "x")
		}
		waited := make(chan error, 1)
		go func() {
			_, err := conn.OpenStreamSync(t.Context())
			waited <- err
		}()
		<-time.After(time.Second)
		select {
		case err := <-waited:
			t.Errorf("one more was opened: %v", err)
		default:
		}
		all[0].Close()
		io.ReadAll(all[0])
		if err := <-waited; err != nil {
			t.Errorf("when one has ended: %v", err)
		}
		conn.CloseWithError(0, "")
	})
}

// Windows of all connections grow only so far together; those that may not are slower, and served.
func TestF54WindowsShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := open(t, Config{Windows: 1})
		defer n.end()
		tr, end := n.client(nil)
		defer end()
		conn, err := tr.Dial(t.Context(), n.at, trusting, nil)
		if err != nil {
			t.Fatal(err)
		}
		str, err := conn.OpenStreamSync(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sent := strings.Repeat("x", 2<<20)
		go func() { io.WriteString(str, sent); str.Close() }()
		if got, err := io.ReadAll(str); err != nil || string(got) != sent {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
		if n.windows.Load() != 0 {
			t.Errorf("windows have grown by %d", n.windows.Load())
		}
		conn.CloseWithError(0, "")
	})
}

func TestTooManyConnectionsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := open(t, Config{})
		defer n.end()
		n.most.Store(0)
		tr, end := n.client(nil)
		defer end()
		var refused *quic.TransportError
		if _, err := tr.Dial(t.Context(), n.at, trusting, nil); !errors.As(err, &refused) || refused.ErrorCode != quic.ConnectionRefused {
			t.Errorf("got %v", err)
		}
	})
}

func TestJ04SmallBuffersAreNamed(t *testing.T) {
	all := Buffers{Read: 208 << 10, Write: 4 << 20}.complaints()
	if len(all) != 2 || !strings.Contains(all[0], "wanted 7340032 bytes, got 212992") || !strings.Contains(all[0], "sysctl -w net.core.rmem_max=7340032") ||
		!strings.Contains(all[1], "got 4194304") || !strings.Contains(all[1], "sysctl -w net.core.wmem_max=7340032") {
		t.Errorf("%q", all)
	}
	if all := (Buffers{Read: Wanted, Write: 2 * Wanted}).complaints(); all != nil {
		t.Errorf("%q", all)
	}
	if all := (Buffers{}).complaints(); all != nil { // not known
		t.Errorf("%q", all)
	}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	small := granted(conn.(*net.UDPConn))
	if got := enlarge(conn.(*net.UDPConn)); got.Read > 0 && got.Read < min(Wanted, small.Read) {
		t.Errorf("enlarged from %+v to %+v", small, got)
	}
}
