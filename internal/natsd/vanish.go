package natsd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// askTimeout is what a running server has to say whether it believes in messages.
const askTimeout = 2 * time.Second

// files knows the message blocks of each stream, and the sequence that each begins with.
type files struct {
	dir    string
	blocks map[string]map[int]uint64 // by the stream's folder
	doubt  map[string]bool           // what was found vanished at the look before
	absent bool                      // the whole folder was, at the look before
	held   map[string]handle         // by path, see hold
}

// look returns the streams of which a block has gone that the server believes to be there: whatever it confirms goes into
// a file that nobody will find. believes tells whether it has messages from one sequence up to before another (0: any).
func (f *files) look(believes func(stream string, from, to uint64) bool) (gone []string) {
	folders, err := filepath.Glob(filepath.Join(escaped(f.dir), "jetstream", "*", "streams", "*", "msgs"))
	if err != nil {
		return nil
	}
	now := map[string]map[int]uint64{}
	for _, folder := range folders {
		now[folder] = f.firsts(folder)
	}
	doubt := map[string]bool{}
	for folder, before := range f.blocks {
		stream := filepath.Base(filepath.Dir(folder))
		for n, first := range before {
			_, there := now[folder][n]
			if h := f.held[blockPath(folder, n)]; !there && first == 0 && h.file != nil {
				first = firstIn(h.file)
			}
			if there || first == 0 || !believes(stream, first, end(first, n, before, now[folder])) {
				continue
			}
			if f.doubt[folder] { // not only for as long as a block is removed
				gone = append(gone, stream)
				break
			}
			doubt[folder] = true
			if now[folder] == nil {
				now[folder] = map[int]uint64{}
			}
			now[folder][n] = first
		}
	}
	f.blocks, f.doubt = now, doubt
	if len(gone) == 0 { // else what is held is to be put back
		f.hold()
	}
	return gone
}

// end returns the sequence before which block n ends, as far as the others tell: that of the first of the next block, 0 when there
// is none, or behind its own first message when it is not known where the next one begins.
func end(first uint64, n int, all ...map[int]uint64) uint64 {
	best, begins := 0, uint64(0)
	for _, blocks := range all {
		for m, seq := range blocks {
			if m > n && (best == 0 || m < best || m == best && begins == 0) {
				best, begins = m, seq
			}
		}
	}
	if best > 0 && begins <= first {
		return first + 1
	}
	return begins
}

// firsts returns the blocks in a folder, with 0 where it is not known what they begin with.
func (f *files) firsts(folder string) map[int]uint64 {
	all := map[int]uint64{}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return all
	}
	for _, e := range entries {
		text, ok := strings.CutSuffix(e.Name(), ".blk")
		n, err := strconv.Atoi(text)
		if !ok || err != nil {
			continue
		}
		if all[n] = f.blocks[folder][n]; all[n] == 0 {
			if file, err := os.Open(filepath.Join(folder, e.Name())); err == nil {
				all[n] = firstIn(file)
				file.Close()
			}
		}
	}
	return all
}

// firstIn reads the sequence of the first message, 0 when there is none among the first records.
func firstIn(file io.ReaderAt) uint64 {
	var head [recordHead]byte
	at := int64(0)
	for range 64 {
		if _, err := file.ReadAt(head[:], at); err != nil {
			return 0
		}
		seq := le.Uint64(head[4:])
		if seq&(erased|tombstone) == 0 {
			return min(seq, sequenceMax)
		}
		at += int64(le.Uint32(head[:]) &^ withHeaders)
	}
	return 0
}

// believes tells whether the running server counts on a message from one sequence up to before another (0: any). It is not asked for
// the message: a server that finds no file for it forgets it without a word.
func believes(nc *nats.Conn, stream string, from, to uint64) bool {
	state, ok := stateOf(nc, stream, "")
	if !ok || to != 0 && state.First >= to || state.Last < from || state.Messages == 0 {
		return false // who can't be asked now may be next time; it has removed what was before the first
	}
	if state.Deleted > 0 {
		if state, ok = stateOf(nc, stream, `{"deleted_details":true}`); !ok {
			return false
		}
	}
	if from = max(from, state.First); to == 0 {
		to = state.Last + 1
	}
	removed := uint64(0)
	for _, seq := range state.Which {
		if from <= seq && seq < to {
			removed++
		}
	}
	return from < to && removed < to-from
}

// state is what a server says of a stream.
type state struct {
	Messages uint64   `json:"messages"`
	First    uint64   `json:"first_seq"`
	Last     uint64   `json:"last_seq"`
	Deleted  int      `json:"num_deleted"` // between the two
	Which    []uint64 `json:"deleted"`     // when it was asked for
}

func stateOf(nc *nats.Conn, stream, how string) (state, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	var answer struct {
		Error *struct{ Code int } `json:"error"`
		State state               `json:"state"`
	}
	reply, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+stream, []byte(how))
	if err != nil || json.Unmarshal(reply.Data, &answer) != nil || answer.Error != nil {
		return state{}, false
	}
	return answer.State, true
}

// lostFiles says what has vanished from the store while it is in use, "" for nothing.
func (s *Server) lostFiles(f *files, nc *nats.Conn) string {
	if _, err := os.Stat(s.cfg.Dir); errors.Is(err, fs.ErrNotExist) {
		absent := f.absent // not only for as long as all of the data folder is removed
		if f.absent = true; absent && s.cfg.PutBack {
			return s.cfg.Dir + " was removed"
		}
		return ""
	}
	f.absent = false
	cut := f.cut()
	gone := f.look(func(stream string, from, to uint64) bool { return believes(nc, stream, from, to) })
	switch {
	case len(gone) > 0:
		return "files with messages were removed from " + strings.Join(gone, ", ")
	case len(cut) > 0:
		return "files with messages were cut off in " + strings.Join(cut, ", ")
	}
	return ""
}

// lookAfter opens the store again when something of it has vanished. The error is that it is not there any more at all.
func (s *Server) lookAfter(ctx context.Context, nc *nats.Conn) error {
	if s.replaced() {
		return fmt.Errorf("%s was removed or replaced while it is in use: nothing that is stored now would be found again; "+
			"put it back and start the gateway again, and let producers send again what was acknowledged since", s.cfg.Dir)
	}
	why := s.lostFiles(s.known, nc)
	if why == "" {
		return nil
	}
	s.log.Error("FILES OF THE STORE WERE REMOVED while it is in use: what can still be read of them is put back, and the store opened again", "cause", why)
	believed, err := s.holdings()
	if err != nil {
		s.log.Warn("what the store held is not known, so it cannot be told whether all of it is put back", "error", err)
	}
	s.believed = believed
	s.heal(ctx, why)
	return nil
}

// account reports what the store has less than it held, after files of it have vanished; s.healing is held.
func (s *Server) account(since time.Time) error {
	believed := s.believed
	if s.believed = nil; believed == nil || s.cfg.Aside == "" {
		return nil
	}
	reported, err := readReport(s.cfg.Aside)
	if err != nil {
		return err
	}
	missing, err := s.compare(believed, reported, since)
	if err != nil {
		return err
	}
	if err := errors.Join(addToReport(s.cfg.Aside, missing), addToReport(s.cfg.Dir, missing)); err != nil {
		return err
	}
	all := append(reported, missing...)
	s.mu.Lock()
	s.damage = all
	tell := s.tell
	s.mu.Unlock()
	for _, d := range all {
		if d.Found.After(since) {
			s.sayLost(d)
			if tell != nil {
				tell(d)
			}
		}
	}
	return nil
}
