package admin

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/headgate-io/headgate/event"
)

// guard keeps web pages away from a listener that asks for no password. A page may reach 127.0.0.1 in two ways:
// by a cross-origin request, which browsers mark, and by a name of its own that it lets point to 127.0.0.1
// (DNS rebinding), which shows in the Host header. An IP address in Host can't be rebound.
func (s *Server) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch {
		case !s.ours(r.Host):
			s.fail(w, r, event.Problemf(event.Forbidden,
				"the name %q is not known here: use an IP address or add the name to admin.hosts", r.Host))
		case cross.Check(r) != nil, crossRead(r):
			s.fail(w, r, event.Problemf(event.Forbidden, "requests from web pages of another origin are refused"))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// ours reports whether host is an IP address, localhost, or a configured name. No host is HTTP/1.0: no browser.
func (s *Server) ours(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "" || host == "localhost" {
		return true
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	for _, name := range s.cfg.Hosts {
		if strings.EqualFold(name, host) {
			return true
		}
	}
	return false
}

// crossRead reports a read that a page of another origin makes for itself (an image, a script, a fetch);
// following a link is fine.
func crossRead(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") != "navigate"
}
