package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"net"
	"testing"
	"time"

	"github.com/quic-go/quic-go/quicvarint"

	"github.com/headgate-io/headgate/sdk/session"
)

// initials makes the first packets of handshakes, as they are on the wire (RFC 9000 section 17.2.2, RFC 9001 section 5), which need
// no client behind them.
type initials struct {
	t      *testing.T
	source []byte // connection id of the client, which its hello names
	hello  []byte
}

func newInitials(t *testing.T) *initials {
	t.Helper()
	i := &initials{t: t, source: []byte("12345678")}
	conn := tls.QUICClient(&tls.QUICConfig{TLSConfig: &tls.Config{InsecureSkipVerify: true, ServerName: "localhost", NextProtos: []string{session.Protocol},
		MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.X25519}}}) // the others do not fit into a packet
	conn.SetTransportParameters(append([]byte{0x0f, byte(len(i.source))}, i.source...)) // initial_source_connection_id
	if err := conn.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for e := conn.NextEvent(); e.Kind != tls.QUICNoEvent; e = conn.NextEvent() {
		if e.Kind == tls.QUICWriteData {
			i.hello = append(i.hello, e.Data...)
		}
	}
	conn.Close()
	return i
}

// fresh is a connection id that nobody has used.
func fresh() []byte {
	id := make([]byte, 8)
	rand.Read(id)
	return id
}

func label(t *testing.T, secret []byte, name string, size int) []byte {
	info := append(binary.BigEndian.AppendUint16(nil, uint16(size)), byte(len("tls13 "+name)))
	key, err := hkdf.Expand(sha256.New, secret, string(append(append(info, "tls13 "+name...), 0)), size)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// packet is one to a connection id of the gateway's, with the token of a Retry or none.
func (i *initials) packet(to, token []byte) []byte {
	t := i.t
	salt, _ := hex.DecodeString("38762cf7f55934b34d179ae6a4c80cadccbb7f0a")
	secret, err := hkdf.Extract(sha256.New, to, salt)
	if err != nil {
		t.Fatal(err)
	}
	secret = label(t, secret, "client in", sha256.Size)
	sealing, err := aes.NewCipher(label(t, secret, "quic key", 16))
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(sealing)
	if err != nil {
		t.Fatal(err)
	}
	hiding, err := aes.NewCipher(label(t, secret, "quic hp", 16))
	if err != nil {
		t.Fatal(err)
	}
	const size, number = 1200, 4 // of the datagram, and of the packet's number, which is 0
	h := append([]byte{0xc0 | number - 1, 0, 0, 0, 1, byte(len(to))}, to...)
	h = append(append(h, byte(len(i.source))), i.source...)
	h = append(quicvarint.Append(h, uint64(len(token))), token...)
	at := len(h) + 2
	h = quicvarint.AppendWithLen(h, uint64(size-at), 2)
	h = append(h, make([]byte, number)...)
	payload := append(quicvarint.Append([]byte{0x06, 0}, uint64(len(i.hello))), i.hello...) // CRYPTO from 0
	payload = append(payload, make([]byte, size-len(h)-aead.Overhead()-len(payload))...)    // PADDING
	d := aead.Seal(h, label(t, secret, "quic iv", aead.NonceSize()), payload, h)
	mask := make([]byte, aes.BlockSize)
	hiding.Encrypt(mask, d[at+number:][:aes.BlockSize])
	d[0] ^= mask[0] & 0x0f
	for k := range number {
		d[at+k] ^= mask[1+k]
	}
	return d
}

// retryOf reads a Retry (RFC 9000 section 17.2.5): the gateway's connection id and the token.
func retryOf(d []byte) (id, token []byte, ok bool) {
	if len(d) < 7+16 || d[0]&0xf0 != 0xf0 {
		return nil, nil, false
	}
	rest := d[6+int(d[5]):]
	id, rest = rest[1:][:rest[0]], rest[1+int(rest[0]):]
	return id, rest[:len(rest)-16], true
}

// stranger is a socket at an address of this machine that nobody else has.
func stranger(t *testing.T, n int, to *net.UDPAddr) *net.UDPConn {
	t.Helper()
	conn, err := net.DialUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 1, byte(n/250), byte(n%250+1))}, to)
	if err != nil {
		t.Skipf("this machine has not all addresses of 127.0.0.0/8: %v", err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// heard waits for a datagram for a while.
func heard(conn *net.UDPConn, wait time.Duration) []byte {
	b := make([]byte, 2048)
	conn.SetReadDeadline(time.Now().Add(wait))
	n, err := conn.Read(b)
	if err != nil {
		return nil
	}
	return b[:n]
}
