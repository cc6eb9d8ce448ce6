package natsd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/internal/wholefile"
)

// Damage is what was found of one message block, or of one stream that has less than it had. The server itself would
// pass over it without a word, and after a crash take away all that stands behind it in its block.
type Damage struct {
	Stream   string    `json:"stream"`
	Block    int       `json:"block,omitempty"`    // 0: of the whole stream
	Messages uint64    `json:"messages"`           // at most so many are lost
	From     uint64    `json:"from"`               // sequences among which the lost ones are
	To       uint64    `json:"to"`                 //
	Original string    `json:"original,omitempty"` // the block as it was found, a file beside this report
	Found    time.Time `json:"found"`
}

// DamagedError says that a store is damaged that is not to be healed.
type DamagedError struct{ All []Damage }

// Error names the streams.
func (e *DamagedError) Error() string {
	var streams []string
	for _, d := range e.All {
		streams = append(streams, d.Stream)
	}
	slices.Sort(streams)
	return "messages are damaged in " + strings.Join(slices.Compact(streams), ", ")
}

const reportName = "damage.json"

// readReport returns what was found at this start and before. There are two reports: one beside what was damaged, as long as
// nobody has taken it away, and one in the store, for good.
func readReport(folder string) (all []Damage, err error) {
	if folder == "" {
		return nil, nil
	}
	doc, err := os.ReadFile(filepath.Join(folder, reportName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(doc, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read the report of damages: %w; put it right, or move %s away", err, filepath.Join(folder, reportName))
	}
	return all, nil
}

func addToReport(folder string, found []Damage) error {
	if len(found) == 0 {
		return nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	all, err := readReport(folder)
	if err != nil {
		return err
	}
	doc, err := json.MarshalIndent(append(all, found...), "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(filepath.Join(folder, reportName), append(doc, '\n'))
}

// examineStore examines every block of every stream before the server opens them. With aside, a damaged block is kept
// there and what is sound of it is written again; else the damage is an error, and nothing is touched.
func examineStore(dir, aside string, log *slog.Logger) error {
	folders, err := filepath.Glob(filepath.Join(escaped(dir), "jetstream", "*", "streams", "*", "msgs"))
	if err != nil {
		return err
	}
	began, read := time.Now(), int64(0)
	var damaged []Damage
	for _, folder := range folders {
		if aside != "" {
			if err := mendMeta(filepath.Dir(folder), filepath.Join(dir, "definitions"), log); err != nil {
				return err
			}
		}
		s := &streamFiles{dir: dir, folder: folder, name: filepath.Base(filepath.Dir(folder)), aside: aside}
		if err := s.examine(); err != nil {
			return fmt.Errorf("examine %s: %w", folder, err)
		}
		read += s.read
		if len(s.bad) == 0 {
			continue
		}
		found := s.damages()
		if aside == "" {
			damaged = append(damaged, append(found, Damage{Stream: s.name})...)
			continue
		}
		if err := s.heal(found); err != nil {
			return fmt.Errorf("heal %s: %w", folder, err)
		}
		if len(found) == 0 {
			log.Warn("a damaged block was mended, no message is lost", "stream", s.name)
		}
	}
	level, took := slog.LevelDebug, time.Since(began)
	if took > time.Second { // somebody may be waiting for the start
		level = slog.LevelInfo
	}
	log.Log(context.Background(), level, "store examined", "bytes", read, "took", took.Round(time.Millisecond).String())
	if len(damaged) > 0 {
		return &DamagedError{damaged}
	}
	return nil
}

// escaped makes a path one that Glob takes as it is.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// streamFiles are the blocks of one stream.
type streamFiles struct {
	dir, folder, name, aside string

	read    int64
	numbers []int
	bad     map[int]*block
	edges   map[int][2]uint64 // first and last sequence of every block
	removed map[uint64]bool
}

func (s *streamFiles) path(number int) string {
	return filepath.Join(s.folder, strconv.Itoa(number)+".blk")
}

// list finds the blocks.
func (s *streamFiles) list() error {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if text, ok := strings.CutSuffix(e.Name(), ".blk"); ok {
			if n, err := strconv.Atoi(text); err == nil {
				s.numbers = append(s.numbers, n)
			}
		}
	}
	slices.Sort(s.numbers)
	return nil
}

func (s *streamFiles) examine() error {
	if err := s.list(); err != nil {
		return err
	}
	s.bad, s.edges, s.removed = map[int]*block{}, map[int][2]uint64{}, map[uint64]bool{}
	for i, n := range s.numbers {
		buf, err := os.ReadFile(s.path(n))
		if err != nil {
			return err
		}
		s.read += int64(len(buf))
		if strings.HasPrefix(string(buf[:min(3, len(buf))]), "cmp") {
			continue // compressed, which no stream of ours is
		}
		b, err := examineBlock(buf, s.name, n, i == len(s.numbers)-1)
		if err != nil {
			return err
		}
		s.edges[n] = [2]uint64{b.first, b.last}
		for _, seq := range b.removed {
			s.removed[seq] = true
		}
		if b.repaired || len(b.holes) > 0 {
			s.bad[n] = b
		}
	}
	return nil
}

// damages says what is lost, one for each hole that may have held messages.
func (s *streamFiles) damages() (all []Damage) {
	now := time.Now().UTC()
	for _, n := range s.numbers {
		b := s.bad[n]
		if b == nil {
			continue
		}
		for _, h := range b.holes {
			if h.empty() {
				continue
			}
			d := Damage{Stream: s.name, Block: n, Found: now, Original: s.original(n, now)}
			d.From, d.To = s.span(n, b, h)
			d.Messages = d.To - d.From + 1
			for seq := range s.removed {
				if d.From <= seq && seq <= d.To {
					d.Messages--
				}
			}
			// Sequences can be missing for other reasons, but a hole holds no more records than fit in.
			d.Messages = min(d.Messages, uint64(max(1, (h.to-h.from)/recordMin)))
			if d.Messages > 0 {
				all = append(all, d)
			}
		}
	}
	return all
}

func (s *streamFiles) original(n int, now time.Time) string {
	return fmt.Sprintf("%s-%d.blk-%s", s.name, n, now.Format("20060102T150405.000"))
}

// span returns the sequences that are missing in a hole, at least one.
func (s *streamFiles) span(n int, b *block, h hole) (from, to uint64) {
	before, after := h.before, h.after
	for _, m := range s.numbers {
		if m < n && h.before == 0 {
			before = max(before, s.edges[m][1])
		}
		if m > n && after == 0 {
			after = s.edges[m][0]
		}
	}
	own := uint64(0) // what the damaged record itself says, where that can be
	if h.to-h.from >= recordHead {
		if own = le.Uint64(b.buf[h.from+4:]) &^ (erased | tombstone); own >= sequenceMax {
			own = 0
		}
	}
	switch {
	case before == 0 && after == 0:
		return max(1, own), max(1, own)
	case after == 0:
		return before + 1, before + 1 // and perhaps more, which nobody can tell
	case before == 0:
		if own == 0 || own >= after { // an emptied file that was written on to has zeros there: as many as have room
			own = after - min(after-1, uint64(max(1, (h.to-h.from)/recordMin)))
		}
		return own, after - 1
	}
	return before + 1, max(before+1, after-1)
}

// heal keeps every damaged block aside, and the report there, before it writes what is sound of it.
func (s *streamFiles) heal(found []Damage) error {
	if err := os.MkdirAll(s.aside, 0o700); err != nil {
		return err
	}
	kept := map[int]bool{}
	for i := range found {
		d := &found[i]
		if kept[d.Block] {
			continue
		}
		kept[d.Block] = true
		content, err := os.ReadFile(s.path(d.Block))
		if err == nil {
			err = wholefile.Write(filepath.Join(s.aside, d.Original), content)
		}
		if err != nil {
			return err
		}
	}
	if err := errors.Join(addToReport(s.aside, found), addToReport(s.dir, found)); err != nil {
		return err
	}
	// The server's index knows of the messages that are lost; without it it reads the blocks.
	if err := os.Remove(filepath.Join(s.folder, "index.db")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for n, b := range s.bad {
		keep := uint64(0)
		if last := len(b.holes) - 1; n == s.numbers[len(s.numbers)-1] && last >= 0 && b.holes[last].after == 0 && !b.holes[last].empty() {
			_, keep = s.span(n, b, b.holes[last])
		}
		if err := wholefile.Write(s.path(n), b.healed(keep)); err != nil {
			return err
		}
	}
	return nil
}
