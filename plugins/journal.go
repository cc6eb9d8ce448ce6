package plugins

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// LogLine is what a guest logged, or what happened to a version of a plugin. It never has anything of an event but what a
// guest put into it.
type LogLine struct {
	Number  uint64 // goes upwards over all plugins
	Time    time.Time
	Version string // the start of its digest
	Level   slog.Level
	Guest   bool // it speaks itself
	Text    string
}

// LogQuery says which lines to read.
type LogQuery struct {
	Plugin string
	Digest string // the whole or the start of one; empty: all versions
	Last   int    // so many of those that are there; 0: all
	Follow bool   // wait for more
}

const (
	journalBytes = 128 << 10 // of the lines of one version; the oldest go first
	journalsKept = 128       // versions; the one that was silent longest goes first
	lineOverhead = 64        // bytes that a line takes besides its text
)

// journals keeps the last lines of each version. It is safe for concurrent use.
type journals struct {
	mu     sync.Mutex
	number uint64               // guarded by mu
	all    map[version]*journal // guarded by mu
	more   chan struct{}        // guarded by mu: closed by the next line; nil when nobody waits
}

type journal struct {
	lines []LogLine
	bytes int
}

// add keeps one line.
func (j *journals) add(v version, level slog.Level, guest bool, text string) {
	v.stage = "" // of all stages together
	j.mu.Lock()
	defer j.mu.Unlock()
	w := j.all[v]
	if w == nil {
		if len(j.all) >= journalsKept {
			delete(j.all, j.oldest())
		}
		w = &journal{}
		j.all[v] = w
	}
	j.number++
	w.lines = append(w.lines, LogLine{Number: j.number, Time: time.Now().UTC(), Version: v.digest, Level: level, Guest: guest, Text: text})
	w.bytes += lineOverhead + len(text)
	for w.bytes > journalBytes {
		w.bytes -= lineOverhead + len(w.lines[0].Text)
		w.lines[0] = LogLine{}
		w.lines = w.lines[1:]
	}
	if j.more != nil {
		close(j.more)
		j.more = nil
	}
}

// oldest is the version that has been silent longest. The caller holds j.mu.
func (j *journals) oldest() (v version) {
	first := ^uint64(0)
	for k, w := range j.all {
		if last := w.lines[len(w.lines)-1].Number; last < first {
			v, first = k, last
		}
	}
	return v
}

// forget drops the lines of one version.
func (j *journals) forget(v version) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.all, v)
}

// after returns the lines behind a number, in order, and what is closed by the next line of whatever plugin.
func (j *journals) after(q LogQuery, number uint64) (lines []LogLine, known bool, more <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for v, w := range j.all {
		if v.plugin != q.Plugin || !sameVersion(v.digest, q.Digest) {
			continue
		}
		known = true
		from, _ := slices.BinarySearchFunc(w.lines, number+1, func(l LogLine, n uint64) int { return cmp.Compare(l.Number, n) })
		lines = append(lines, w.lines[from:]...)
	}
	slices.SortFunc(lines, func(a, b LogLine) int { return cmp.Compare(a.Number, b.Number) })
	if j.more == nil {
		j.more = make(chan struct{})
	}
	return lines, known, j.more
}

// sameVersion compares the start of a digest with one that was asked for, in full or in part; nothing asks for all.
func sameVersion(short, digest string) bool {
	if digest != "" && !strings.HasPrefix(digest, "sha256:") {
		digest = "sha256:" + digest
	}
	n := min(len(short), len(digest))
	return short[:n] == digest[:n]
}

// Logs hands over the lines of a plugin that are still there, and then, with Follow, those that come until ctx ends or
// visit returns an error, which it returns. The first visit may be with no lines; known is whether anything was ever said
// of the plugin. visit keeps nothing that it is given.
func (h *Host) Logs(ctx context.Context, q LogQuery, visit func(lines []LogLine, known bool) error) error {
	number := uint64(0)
	for first := true; ; first = false {
		lines, known, more := h.journals.after(q, number)
		if n := len(lines); n > 0 {
			number = lines[n-1].Number
			if first && q.Last > 0 {
				lines = lines[max(0, n-q.Last):]
			}
		}
		if first || len(lines) > 0 {
			if err := visit(lines, known); err != nil {
				return err
			}
		}
		if !q.Follow {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		}
	}
}

// Note keeps a line about a version, with what is in its logs.
func (h *Host) Note(plugin, digest string, level slog.Level, text string) {
	h.journals.add(version{plugin: plugin, digest: shortDigest(digest)}, level, false, text)
}

// ForgetLogs drops the lines of a version that was deleted.
func (h *Host) ForgetLogs(plugin, digest string) {
	h.journals.forget(version{plugin: plugin, digest: shortDigest(digest)})
}

// note keeps a line about the step's version.
func (s *surroundings) note(level slog.Level, format string, args ...any) {
	if s.tell != nil {
		s.tell(level, false, fmt.Sprintf(format, args...))
	}
}
