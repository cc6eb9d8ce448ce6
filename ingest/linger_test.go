package ingest

import (
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// halved is an end of a pipe whose sending side can be ended.
type halved struct{ net.Conn }

func (halved) CloseWrite() error { return nil }

// Who still sends when it is answered gets its answer, as long as it sends, and for a while: a reset would take it away.
func TestLingerAsLongAsSomethingComes(t *testing.T) {
	for name, c := range map[string]struct {
		pause       time.Duration // between pieces of 10 KiB
		pieces      int
		least, most time.Duration // until the connection may be closed
	}{
		"nothing comes":                  {0, 0, time.Second, time.Second},
		"it comes slowly":                {410 * time.Millisecond, 10, 5100 * time.Millisecond, 5600 * time.Millisecond},
		"it comes after a while":         {900 * time.Millisecond, 3, 3700 * time.Millisecond, 4200 * time.Millisecond},
		"what is on its way, and no end": {110 * time.Millisecond, 1000, 10 * time.Second, 11 * time.Second},
		"more than is read":              {0, 2000, 0, 0},
		"too late":                       {1100 * time.Millisecond, 1, time.Second, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			var sending sync.WaitGroup
			sending.Go(func() {
				for range c.pieces {
					<-time.After(c.pause)
					if _, err := near.Write(make([]byte, 10<<10)); err != nil {
						return
					}
				}
			})
			began := time.Now()
			linger(halved{far})
			if took := time.Since(began); took < c.least || took > c.most {
				t.Errorf("%s: %v", name, took)
			}
			far.Close()
			sending.Wait()
			near.Close()
		})
	}
}
