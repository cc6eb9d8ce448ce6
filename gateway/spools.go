package gateway

import (
	"fmt"
	"os"
	"time"

	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/gateway/datafolder"
	"github.com/headgate-io/headgate/internal/logfolder"
)

const (
	defaultSpool = 20 << 30
	// mostReserve is what the spool leaves free on the disk at most; a sixteenth of max_bytes, or of the disk, where that is less.
	mostReserve = 1 << 30
)

// openSpace finds out how much the spools may hold.
func (g *Gateway) openSpace() error {
	path := g.folder.File("spool")
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("make the folder of the spool: %w", err)
	}
	limit := int64(g.cfg.Spool.MaxBytes)
	if limit == 0 {
		free, err := datafolder.FreeBytes(path)
		if err != nil {
			return fmt.Errorf("read free space of %s: %w", path, err)
		}
		own, err := datafolder.BytesIn(path)
		if err != nil {
			return err
		}
		limit = min(defaultSpool, max(leastDefault, (free+own)/2))
	}
	size, err := datafolder.DiskBytes(path)
	if err != nil {
		return fmt.Errorf("read the size of the disk of %s: %w", path, err)
	}
	g.folder.Reserve = min(mostReserve, limit/16, size/16)
	g.space = spool.NewSpace(limit, g.folder.Reserve, func() (int64, error) { return datafolder.FreeBytes(path) })
	g.space.Count(func() int64 { return g.lanes.Held() + g.letters.Held() })
	return nil
}

// openSpool opens a stream's spool. Dead letters have none: their backend is on the same disk, and what goes to them is in
// the spool of their stream until it has arrived.
func (g *Gateway) openSpool(s *stream) (*spool.Spool, error) {
	name, to := s.name, &s.delivery
	if _, dead := deadLetterOf(name); dead {
		return nil, nil
	}
	gone := g.folder.SpoolGone(name)
	files, err := logfolder.Make(g.folder.SpoolFolder(name))
	if err == nil {
		err = g.folder.MarkSpool(name)
	}
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	if gone {
		g.log.Error("THE SPOOL OF A STREAM WAS REMOVED while no gateway ran: what was in it and not delivered is lost, how much it was nobody can tell",
			"stream", name, "folder", g.folder.SpoolFolder(name))
		g.spoolsGone.Store(name, true)
	}
	cfg := spool.Config{Stream: name}
	if to.bus != nil && to.bus.tail {
		cfg.TailBytes, cfg.TailAge = int64(g.cfg.Spool.Tail.Bytes), time.Duration(g.cfg.Spool.Tail.Age)
	}
	return spool.New(cfg, spool.Deps{Files: files, Space: g.space, Log: g.log, Lost: g.loser(s, "the spool")})
}

// room returns nil when the stream may take more, else an *event.Problem.
func (s *stream) room() error {
	if s.spool == nil {
		return nil
	}
	return s.spool.Room()
}

// spoolHealth says what waits in the spools; the fault names one that takes no more.
func (g *Gateway) spoolHealth() (fault, note string) {
	for name, s := range *g.streams.Load() {
		if s.spool == nil {
			continue
		}
		if err := s.spool.Room(); err != nil {
			fault = err.Error()
		}
		if st := s.spool.Stats(); st.Frames > 0 && s.inTrouble() {
			note = fmt.Sprintf("stream %s: %d events (%d bytes) wait for the backend, the oldest for %v", name, st.Events,
				st.Bytes, time.Since(st.Oldest).Round(time.Second))
		} else if _, gone := g.spoolsGone.Load(name); gone {
			note = fmt.Sprintf("stream %s: its spool was removed while no gateway ran; what it held and had not delivered is lost", name)
		} else if st.Missing > 0 {
			note = fmt.Sprintf("stream %s: up to %d events of the spool are lost, its files were removed or cut off; see its quarantine", name, st.Missing)
		} else if st.Damaged > 0 && note == "" {
			note = fmt.Sprintf("stream %s: %d damaged ranges are in the quarantine of the spool", name, st.Damaged)
		}
	}
	return fault, note
}

// spools returns those that are open.
func (g *Gateway) spools() (open []*spool.Spool) {
	for _, s := range *g.streams.Load() {
		if s.spool != nil {
			open = append(open, s.spool)
		}
	}
	return open
}
