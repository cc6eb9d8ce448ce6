package client

import (
	"errors"
	"math/rand/v2"
	"net"
	"time"

	"github.com/headgate-io/headgate/internal/lossy"
)

func rand01() float64 { return rand.Float64() }

func as[T error](err error, to *T) bool { return errors.As(err, to) }

// nobody opens a socket on a network without anybody else.
func nobody() (net.PacketConn, error) {
	return lossy.New(1, time.Millisecond).Endpoint("10.0.0.2:1"), nil
}
