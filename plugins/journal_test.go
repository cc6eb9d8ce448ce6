package plugins

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func logsOf(t *testing.T, h *Host, q LogQuery) (texts []string, known bool) {
	t.Helper()
	err := h.Logs(t.Context(), q, func(lines []LogLine, k bool) error {
		known = k
		for _, l := range lines {
			who := "gateway"
			if l.Guest {
				who = "guest"
			}
			texts = append(texts, fmt.Sprintf("%s %s: %s", l.Level, who, l.Text))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts, known
}

// What a guest logs and where it fails can be read by its name; nothing that a client sent is in it.
func TestLogsOfAVersion(t *testing.T) {
	h := hostOf(t, Config{Instances: 1})
	m := loadOf(t, h, scripted(false).bytes())
	c := chainOf(t, h, Step{Name: "p", Module: m, OnError: Policy{Action: Reject}})
	chainOf(t, h, Step{Name: "other", Module: m})
	process(t, c, batchOf("lhello", "0", "t with a secret"))
	h.Note("p", m.Digest, slog.LevelInfo, "a note")
	got, known := logsOf(t, h, LogQuery{Plugin: "p"})
	want := []string{"INFO guest: lhello", "WARN gateway: failed with TRAP on event 2 of a request: ", "INFO gateway: a note"}
	for i := range min(len(want), len(got)) {
		if !strings.HasPrefix(got[i], want[i]) || strings.Contains(got[i], "secret") {
			t.Errorf("line %d: %s", i, got[i])
		}
	}
	if len(got) != len(want) || !known {
		t.Errorf("%q", got)
	}
	for digest, n := range map[string]int{m.Digest: 3, m.Digest[7:15]: 3, "sha256:00000000": 0} {
		if got, _ := logsOf(t, h, LogQuery{Plugin: "p", Digest: digest}); len(got) != n {
			t.Errorf("%s: %q", digest, got)
		}
	}
	if got, _ := logsOf(t, h, LogQuery{Plugin: "p", Last: 1}); len(got) != 1 || !strings.HasSuffix(got[0], "a note") {
		t.Errorf("%q", got)
	}
	if got, known := logsOf(t, h, LogQuery{Plugin: "nobody"}); len(got) != 0 || known {
		t.Errorf("%q", got)
	}
	h.ForgetLogs("p", m.Digest)
	if _, known := logsOf(t, h, LogQuery{Plugin: "p"}); known {
		t.Error("the logs of a deleted version are there still")
	}
}

// L20: a flood costs a bounded place, and says that it is one.
func TestL20FloodsAreKeptInABoundedPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hostOf(t, Config{})
		s := &surroundings{log: slog.New(slog.DiscardHandler), bill: &bill{}}
		v := version{plugin: "p", digest: "sha256:0123456789ab"}
		s.tell = func(level slog.Level, guest bool, text string) { h.journals.add(v, level, guest, text) }
		long := []byte(strings.Repeat("x", 10<<10))
		for range 3 {
			for range 10_000 {
				s.line(slog.LevelInfo, long)
			}
			<-time.After(time.Second)
		}
		got, _ := logsOf(t, h, LogQuery{Plugin: "p"})
		w := h.journals.all[v]
		if w.bytes > journalBytes || len(got) < journalBytes/(2<<10) || cap(w.lines) > 1024 {
			t.Errorf("%d lines of %d bytes, room for %d", len(got), w.bytes, cap(w.lines))
		}
		if dropped := s.bill.droppedLines.Load(); dropped != 3*(10_000-linesPerSecond) {
			t.Errorf("%d lines dropped", dropped)
		}
		if last := got[len(got)-1]; last != "WARN gateway: more than 100 lines in a second: the rest of this second is counted only" || len(got[0]) != len("INFO guest: ")+1024 {
			t.Errorf("%s, %d bytes", last, len(got[0]))
		}
	})
}

// However many versions there were, the logs of so many are kept: those that spoke last.
func TestLogsOfManyVersions(t *testing.T) {
	h := hostOf(t, Config{})
	for i := range 3 * journalsKept {
		h.Note("p", fmt.Sprintf("sha256:%064d", 0), slog.LevelInfo, "again")
		h.Note("q", fmt.Sprintf("sha256:%012d%052d", i, 0), slog.LevelInfo, "once")
	}
	again, _ := logsOf(t, h, LogQuery{Plugin: "p"})
	once, _ := logsOf(t, h, LogQuery{Plugin: "q"})
	if len(h.journals.all) != journalsKept || len(again) != 3*journalsKept || len(once) != journalsKept-1 {
		t.Errorf("%d versions, %d and %d lines", len(h.journals.all), len(again), len(once))
	}
}

// Whoever follows sees each line once, in order, also while they come.
func TestLogsAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hostOf(t, Config{})
		h.Note("p", "sha256:00", slog.LevelInfo, "0")
		ctx, cancel := context.WithCancel(t.Context())
		seen, done := 0, make(chan error)
		go func() {
			done <- h.Logs(ctx, LogQuery{Plugin: "p", Follow: true}, func(lines []LogLine, _ bool) error {
				for _, l := range lines {
					if l.Text != fmt.Sprint(seen) {
						t.Errorf("%s instead of %d", l.Text, seen)
					}
					seen++
				}
				return nil
			})
		}()
		for i := 1; i < 100; i++ {
			h.Note("p", fmt.Sprintf("sha256:%02d", i%3), slog.LevelInfo, fmt.Sprint(i))
			h.Note("q", "sha256:00", slog.LevelInfo, "of another plugin")
			if i%7 == 0 {
				synctest.Wait()
				if seen != i+1 {
					t.Errorf("%d of %d lines", seen, i+1)
				}
			}
		}
		synctest.Wait()
		cancel()
		if err := <-done; err != nil || seen != 100 {
			t.Errorf("%d lines, %v", seen, err)
		}
		gone := errors.New("gone")
		if err := h.Logs(t.Context(), LogQuery{Plugin: "p", Follow: true}, func([]LogLine, bool) error { return gone }); err != gone {
			t.Error(err)
		}
	})
}
