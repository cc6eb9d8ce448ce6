// Package freeport finds addresses on loopback that a test may listen on again and again.
//
// Their ports are outside of the ranges that systems take ports of connections and of listeners on port 0 from: a port of those is
// somebody else's as soon as nobody listens on it. Until the test ends, the same port is held of the other protocol, which others that
// look here see, also in other processes.
package freeport

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
)

// TCP returns an address of TCP.
func TCP(t testing.TB) string {
	t.Helper()
	return find(t, listenTCP, listenUDP)
}

// UDP returns an address of UDP.
func UDP(t testing.TB) string {
	t.Helper()
	return find(t, listenUDP, listenTCP)
}

func find(t testing.TB, wanted, other func(at string) (io.Closer, error)) string {
	t.Helper()
	for range 1000 {
		at := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))
		mark, err := other(at)
		if err != nil {
			continue
		}
		try, err := wanted(at)
		if err != nil {
			mark.Close()
			continue
		}
		try.Close()
		t.Cleanup(func() { mark.Close() })
		return at
	}
	t.Fatal("no port is free")
	return ""
}

func listenTCP(at string) (io.Closer, error) { return net.Listen("tcp", at) }

func listenUDP(at string) (io.Closer, error) { return net.ListenPacket("udp", at) }
