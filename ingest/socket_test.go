package ingest

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A deadline holds to the moment, whatever deadline came before it.
func TestReadDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer client.Close()
		defer server.Close()
		c := &socket{Conn: server}
		read := func(limit, byteAfter time.Duration) {
			t.Helper()
			start := time.Now()
			c.SetReadDeadline(start.Add(limit))
			if limit == 0 {
				c.SetReadDeadline(time.Time{})
			}
			if byteAfter > 0 {
				go func() { <-time.After(byteAfter); client.Write([]byte{1}) }()
			}
			n, err := c.Read(make([]byte, 1))
			took := time.Since(start)
			switch {
			case byteAfter > 0 && (n != 1 || err != nil || took != byteAfter):
				t.Errorf("limit %v, byte after %v: read %d, %v, took %v", limit, byteAfter, n, err, took)
			case byteAfter == 0 && (n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || took != limit):
				t.Errorf("limit %v, no byte: read %d, %v, took %v", limit, n, err, took)
			}
		}
		read(0, time.Hour)
		read(2*time.Second, time.Second)
		read(time.Minute, 30*time.Second) // the socket still has the two seconds
		read(time.Second, 0)              // and now the minute
		read(time.Minute, 0)
		read(time.Minute, 59*time.Second)
		read(0, time.Hour)
		read(time.Second, 0)
	})
}

func TestWritesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer client.Close()
		defer server.Close()
		c := &socket{Conn: server}
		c.armWrite()
		<-time.After(time.Hour) // the deadline of the socket is long over
		got := make(chan int, 1)
		go func() {
			n, _ := client.Read(make([]byte, 2))
			<-time.After(writeTimeout - 1)
			m, _ := client.Read(make([]byte, 8))
			got <- n + m
		}()
		if n, err := c.Write([]byte("answer")); n != 6 || err != nil || <-got != 6 {
			t.Errorf("wrote %d, %v", n, err)
		}
		c.answer()
		start := time.Now() // nobody reads
		n, err := c.Write([]byte("answer"))
		if took := time.Since(start); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || took < writeTimeout || took > 2*writeTimeout {
			t.Errorf("wrote %d, %v, took %v", n, err, took)
		}
	})
}

// A client that reads a trickle gets no further than one that reads nothing, and one that reads at the rate of bodies gets
// all of a long answer, whatever pieces it is written in.
func TestAnswersMustBeReadAtARate(t *testing.T) {
	for _, piece := range []int{4 << 10, 8 << 20} {
		for _, rate := range []int{slowest / 4, slowest * 5 / 4} { // bytes a second
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				done := make(chan struct{})
				defer func() { server.Close(); <-done }()
				go func() {
					defer close(done)
					for {
						<-time.After(time.Second)
						if _, err := io.CopyN(io.Discard, client, int64(rate)); err != nil {
							return
						}
					}
				}()
				c := &socket{Conn: server}
				c.armWrite()
				c.answer()
				const size = 8 << 20
				start, sent := time.Now(), 0
				var err error
				for doc := make([]byte, size); err == nil && sent < size; {
					var n int
					n, err = c.Write(doc[sent:min(sent+piece, size)])
					sent += n
				}
				if took := time.Since(start); rate < slowest && (err == nil || took > 3*writeTimeout) || rate > slowest && (err != nil || sent != size) {
					t.Errorf("pieces of %d, %d bytes a second: wrote %d, %v, took %v", piece, rate, sent, err, took)
				}
			})
		}
	}
}
