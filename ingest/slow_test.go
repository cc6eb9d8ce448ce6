package ingest

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
)

// timed serves one end of a pipe in a bubble of time and returns the other. Times are those of the defaults.
func timed(t *testing.T, cfg Config, s *fakeStream) *client {
	t.Helper()
	server, err := New(cfg, fakeGate{"s": s}, Deps{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	c := newConn(far, server.open, nil)
	if no := server.open.enter(c, func() bool { return false }); no != nil {
		t.Fatal(no)
	}
	if server.fast != nil {
		c.useExpress(server.fast)
	}
	done := make(chan struct{})
	go func() { defer close(done); server.http.ServeConn(c) }()
	t.Cleanup(func() { near.Close(); <-done })
	return &client{t, near, bufio.NewReader(near)}
}

// drip sends text a byte at a time, one every pause, until the other side has enough.
func (c *client) drip(text string, pause time.Duration) {
	for i := range text {
		if _, err := io.WriteString(c.Conn, text[i:i+1]); err != nil {
			return
		}
		<-time.After(pause)
	}
}

// F38, H03: who sends a byte now and then is cut off as if it sent none.
func TestF38H03Drip(t *testing.T) {
	head := request11(events, "", ndjson)
	long := strings.Replace(head, "Content-Length: 0", "Content-Length: 1000000", 1)
	for name, c := range map[string]struct {
		ahead, drip string        // sent at once, and byte by byte
		pause       time.Duration // between two bytes
		least, most time.Duration // until the answer
		status      int
	}{
		"header":                    {"", head, time.Second, 10 * time.Second, 11 * time.Second, 408},
		"header that ends in time":  {"", head, 50 * time.Millisecond, 0, 10 * time.Second, 200},
		"no header":                 {"P", "", 0, 10 * time.Second, 11 * time.Second, 408},
		"body":                      {long, strings.Repeat("1\n", 100), time.Second, 15 * time.Second, 16 * time.Second, 408}, // 1 MB at 64 KiB/s
		"small body":                {strings.Replace(head, "h: 0", "h: 40", 1), strings.Repeat("1\n", 20), time.Second, 5 * time.Second, 6 * time.Second, 408},
		"small body in time":        {strings.Replace(head, "h: 0", "h: 40", 1), strings.Repeat("1\n", 20), 100 * time.Millisecond, 3 * time.Second, 5 * time.Second, 200},
		"chunked":                   {chunked(events, ndjson), strings.Repeat("2\r\n1\n\r\n", 1000), time.Second, 255 * time.Second, 257 * time.Second, 408}, // 16 MiB at 64 KiB/s
		"chunked, and then nothing": {chunked(events, ndjson) + "2\r\n1\n\r\n", "", 0, 10 * time.Second, 11 * time.Second, 408},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeStream{}
				slow := timed(t, Config{}, s)
				start := time.Now()
				var dripping sync.WaitGroup
				defer dripping.Wait()
				defer slow.Close()
				dripping.Go(func() {
					if c.ahead != "" { // an empty write would be read from a pipe
						io.WriteString(slow.Conn, c.ahead)
					}
					slow.drip(c.drip, c.pause)
				})
				res, err := http.ReadResponse(slow.r, nil)
				if err != nil {
					t.Fatal(err)
				}
				io.Copy(io.Discard, res.Body)
				if took := time.Since(start); res.StatusCode != c.status || took < c.least || took > c.most {
					t.Errorf("%d after %v", res.StatusCode, took)
				}
				if c.status == 408 {
					if !res.Close || len(s.data()) > 0 {
						t.Error("the connection stays open, or something is stored")
					}
				}
			})
		})
	}
}

// H05: the first answer after the age says that it is the last; until then the connection stays open, used or not.
func TestH05ConnectionAgeToTheMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := timed(t, Config{MaxConnectionAge: 2 * time.Second}, &fakeStream{})
		start := time.Now()
		for {
			r := c.send(request11(events, "1\n", ndjson)).answer().want(t, 200, "")
			age := time.Since(start)
			if r.Close {
				if age < 2*time.Second || age > 2200*time.Millisecond {
					t.Errorf("closed after %v", age)
				}
				break
			}
			if age > 3*time.Second {
				t.Fatal("never closed")
			}
			<-time.After(50 * time.Millisecond)
		}
		c.closed()
	})
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := timed(t, Config{}, &fakeStream{})
		c.send(request11(events, "1\n", ndjson)).answer().want(t, 200, "")
		<-time.After(89 * time.Second)
		c.send(request11(events, "1\n", ndjson)).answer().want(t, 200, "")
		start := time.Now()
		c.closed()
		if idle := time.Since(start); idle < 90*time.Second || idle > 91*time.Second {
			t.Errorf("closed after %v", idle)
		}
	})
}

// F38, H03: behind a plain request a connection has the idle time for the first byte of the next one, and that the time of any header.
func TestF38H03SlowBehindAPlainRequest(t *testing.T) {
	plain := request11(events, "1\n", ndjson)
	for name, c := range map[string]struct {
		wait        time.Duration // before a part of the next request; 0: it does not come
		least, most time.Duration // from then on
	}{
		"half a header": {80 * time.Second, 10 * time.Second, 11 * time.Second},
		"nothing":       {0, 90 * time.Second, 91 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := timed(t, Config{}, &fakeStream{})
				for range 2 {
					conn.send(plain).answer().want(t, 200, "")
				}
				start := time.Now()
				if c.wait > 0 {
					<-time.After(c.wait)
					start = time.Now()
					conn.send(plain[:len(plain)/2]).answer().want(t, 408, event.RequestTimeout)
				}
				conn.closed()
				if took := time.Since(start); took < c.least || took > c.most {
					t.Errorf("closed after %v", took)
				}
			})
		})
	}
}
