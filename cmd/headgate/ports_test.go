package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// freePort returns an address that a process of the test may listen on over TCP, again and again. Its port is outside of the
// ranges that systems take ports of connections and of listeners on port 0 from, and until the test ends the same port of UDP is
// held, which other tests that look for one see.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		at := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))
		mark, err := net.ListenPacket("udp", at)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", at)
		if err != nil {
			mark.Close()
			continue
		}
		l.Close()
		t.Cleanup(func() { mark.Close() })
		return at
	}
	t.Fatal("no port is free")
	return ""
}
