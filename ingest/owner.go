package ingest

import (
	"net/netip"

	"github.com/headgate-io/headgate/internal/window"
)

// owner is whose share of what is remembered a request takes: the caller's that was authenticated, or else its network's.
func (c *core) owner(p *plan, r *request) window.Owner {
	who := r.caller(p)
	if len(who.ID) > 0 {
		return c.owners.Owner(who.ID, true)
	}
	name, n := Network(who.Addr)
	return c.owners.Owner(name[:n], false)
}

// Network is what counts as one address: of IPv6 the first 64 bits, since whoever has one has all of these.
func Network(a netip.Addr) (name [8]byte, n int) {
	if a = a.Unmap(); a.Is4() {
		four := a.As4()
		return name, copy(name[:], four[:])
	}
	sixteen := a.As16()
	return name, copy(name[:], sixteen[:8])
}
