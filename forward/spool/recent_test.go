package spool

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// What was written lately is seen without its payload, the newest first, also what is confirmed and kept as a tail.
func TestRecentFrames(t *testing.T) {
	for name, tail := range map[string]int64{"no tail": 0, "a tail": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			disk := newMemory()
			cfg := Config{Stream: "s", SegmentBytes: 300, TailBytes: tail, TailAge: time.Hour}
			s := start(t, disk, cfg, nil)
			before := time.Now().Add(-time.Second)
			for i := range uint64(6) {
				s.add(frame(int32(i%2), i/2+1, 1, 100))
			}
			s.Advance(0, 1, 0)
			s.Advance(1, 1, 0)
			if err := s.stop(); err != nil {
				t.Fatal(err)
			}
			again, err := New(cfg, Deps{Files: disk})
			if err != nil {
				t.Fatal(err)
			}
			if again.Newest().Before(before) {
				t.Errorf("newest: %v", again.Newest())
			}
			want := "1/3/1 0/3/1 1/2/1 0/2/1"
			if tail > 0 {
				want += " 1/1/1 0/1/1"
			}
			if got := recent(t, again, before, 100); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if got := recent(t, again, before, 2); got != "1/3/1 0/3/1" {
				t.Errorf("the first two: %s", got)
			}
			if got := recent(t, again, time.Now().Add(time.Hour), 100); got != "" {
				t.Errorf("of the future: %s", got)
			}
		})
	}
}

func recent(t *testing.T, s *Spool, since time.Time, most int) string {
	t.Helper()
	var all []string
	s.Recent(since, most, func(g *Glance) bool {
		head, err := g.Head(20)
		whole, errWhole := g.Head(1 << 20)
		if err != nil || errWhole != nil || len(whole) != 100 || !g.Sound() {
			t.Errorf("%d/%d: %q, %d bytes, %v %v", g.Partition, g.First, head, len(whole), err, errWhole)
		}
		name := fmt.Sprintf("%d/%d/%d", g.Partition, g.First, g.Events)
		if !strings.HasPrefix(string(whole), name+"|") {
			t.Errorf("%s begins with %q", name, head)
		}
		all = append(all, name)
		return true
	})
	return strings.Join(all, " ")
}
