package main

import "testing"

func TestWhereTheUDPListenerIs(t *testing.T) {
	for _, c := range []struct{ tcp, quic, want string }{
		{"http://127.0.0.1:8080", "", "https://127.0.0.1:8443"},
		{"http://[::1]:8080", "", "https://[::1]:8443"},
		{"http://edge.example.com", "", "https://edge.example.com:8443"},
		{"https://edge.example.com:9443", "", "https://edge.example.com:9443"},
		{"http://127.0.0.1:8080", "https://other.example.com:1", "https://other.example.com:1"},
		{"no url", "", ""},
	} {
		r := route{tcp: &address{url: c.tcp}, quic: c.quic}
		if got := r.quicURL(); got != c.want {
			t.Errorf("%s and %q: %q, want %q", c.tcp, c.quic, got, c.want)
		}
	}
}
