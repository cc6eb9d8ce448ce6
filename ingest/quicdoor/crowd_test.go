package quicdoor

import (
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
)

// The more connections there are, the fewer streams may be opened on one that comes; those that are there keep theirs.
func TestF53J06StreamsOfACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := open(t, Config{shares: []share{{2, 5, 4}, {4, 3, 2}, {math.MaxInt64, 1, 1}}})
		defer n.end()
		dial := func() *quic.Conn {
			tr, end := n.client(nil)
			t.Cleanup(end)
			conn, err := tr.Dial(t.Context(), n.at, trusting, nil)
			if err != nil {
				t.Fatal(err)
			}
			return conn
		}
		want := func(i int, conn *quic.Conn, streams, uni int) {
			for got := 0; ; got++ {
				if _, err := conn.OpenStream(); err == nil {
					continue
				}
				if got != streams {
					t.Errorf("connection %d has %d streams, want %d", i, got, streams)
				}
				break
			}
			for got := 0; ; got++ {
				if _, err := conn.OpenUniStream(); err == nil {
					continue
				}
				if got != uni {
					t.Errorf("connection %d has %d streams in one direction, want %d", i, got, uni)
				}
				break
			}
		}
		var all []*quic.Conn
		for i := range 6 {
			all = append(all, dial())
			if now := n.here.count(); now != int64(i+1) {
				t.Errorf("%d connections are counted, there are %d", now, i+1)
			}
		}
		for i, each := range [...][2]int{{5, 4}, {5, 4}, {3, 2}, {3, 2}, {1, 1}, {1, 1}} {
			want(i, all[i], each[0], each[1])
		}
		for _, conn := range all[1:5] {
			conn.CloseWithError(0, "")
		}
		synctest.Wait()
		<-time.After(time.Second)
		if now := n.here.count(); now != 2 {
			t.Errorf("%d connections are counted, there are 2", now)
		}
		want(6, dial(), 3, 2)
		all[5].CloseWithError(0, "")
		all[0].CloseWithError(0, "")
	})
}

// However they come and go, no more have many than may be there before one gets fewer.
func TestF53FewHaveManyStreams(t *testing.T) {
	last := shares[len(shares)-1]
	if last.others != math.MaxInt64 || last.streams < 2 || last.uni < 3 {
		t.Errorf("the last connections have %+v: HTTP/3 needs three in one direction, and a request beside WebTransport", last)
	}
	most, had := int64(0), int64(0)
	for _, s := range shares {
		if s.streams > mostStreams {
			t.Errorf("%+v", s)
		}
		to := min(s.others, 20_000)
		most += (to - had) * (s.streams + s.uni)
		had = to
	}
	if most > 300_000 {
		t.Errorf("20,000 connections have %d streams", most)
	}
}

// Memory is collected once when a crowd has come and settled, and once when it has gone; not for a few, nor for many that come and go.
func TestMemoryIsCollectedBehindACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done atomic.Int64
		p := presence{collect: func() { done.Add(1) }}
		want := func(what string, n int64) {
			t.Helper()
			<-time.After(10 * settleTime)
			synctest.Wait()
			if got := done.Load(); got != n {
				t.Errorf("%s: %d collections, want %d", what, got, n)
			}
		}
		p.move(crowd - 2)
		want("some", 0)
		for range 20 * crowd {
			p.move(1)
			<-time.After(settleTime / 100)
			p.move(-1)
		}
		want("some that come and go", 0)
		for range 100 { // 10 times as long as it takes to settle
			p.move(crowd / 10)
			<-time.After(settleTime / 10)
		}
		want("a crowd that takes its time", 1)
		p.move(crowd)
		want("a tenth more", 1)
		p.move(-p.count())
		want("all go", 2)
		if p.armed {
			t.Error("it is looked though nothing happens")
		}
	})
}
