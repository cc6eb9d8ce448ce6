// Package udpgro receives UDP datagrams that the kernel has joined (UDP_GRO, udp(7)): a run of them from one sender costs a system call, a
// way through the kernel's network layers and a sender's address once, not each. quic-go, which reads datagrams one by one, reads through it.
package udpgro
