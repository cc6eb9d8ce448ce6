//go:build !linux

package udpgro

import "net"

// Join returns conn: datagrams come one by one on this system.
func Join(conn *net.UDPConn) net.PacketConn { return conn }
