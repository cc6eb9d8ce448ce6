package ingest

import (
	"net/netip"
	"testing"

	"github.com/headgate-io/headgate/internal/window"
)

// Another server with the same secret has the same owners; callers, networks and secrets make others.
func TestOwners(t *testing.T) {
	all := map[window.Owner]string{}
	for _, c := range []struct {
		name   string
		secret byte
		caller string
		addr   string
		again  bool
	}{
		{"an address", 1, "", "192.0.2.1", false},
		{"the same", 1, "", "192.0.2.1", true},
		{"the same in IPv6", 1, "", "::ffff:192.0.2.1", true},
		{"another", 1, "", "192.0.2.2", false},
		{"a network", 1, "", "2001:db8::1", false},
		{"the same network", 1, "", "2001:db8::2", true},
		{"a caller", 1, "web", "192.0.2.1", false},
		{"it from elsewhere", 1, "web", "192.0.2.2", true},
		{"a caller with the bytes of an address", 1, "\xc0\x00\x02\x01", "192.0.2.9", false},
		{"another secret", 2, "web", "192.0.2.1", false},
	} {
		core := &core{owners: window.Secret{c.secret}}
		r := &request{addr: netip.MustParseAddr(c.addr)}
		p := &plan{caller: []byte(c.caller)}
		o := core.owner(p, r)
		if other, found := all[o]; found != c.again {
			t.Errorf("%s: is an owner already %v (%s)", c.name, found, other)
		}
		all[o] = c.name
	}
}
