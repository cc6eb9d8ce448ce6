package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/internal/settings"
)

// SpoolConfig bounds what is kept of frames until their backends have confirmed them.
type SpoolConfig struct {
	MaxBytes settings.Bytes `json:"max_bytes"` // of all streams together, one may have half; default: 20 GiB, or half of what is free
}

const (
	defaultSpool = 20 << 30
	// mostReserve is what the spool leaves free on the disk at most; a sixteenth of its size where that is less.
	mostReserve = 1 << 30
)

func (c *SpoolConfig) problem() error {
	return mustBe(c.MaxBytes == 0 || c.MaxBytes >= 1<<20, "must be at least 1MiB, got %s", c.MaxBytes)
}

// spoolFolder has a folder for each stream.
func (f *folder) spoolFolder(stream string) string { return f.file(filepath.Join("spool", stream)) }

// openSpace finds out how much the spools may hold.
func (g *Gateway) openSpace() error {
	path := g.folder.file("spool")
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("make the folder of the spool: %w", err)
	}
	limit := int64(g.cfg.Spool.MaxBytes)
	if limit == 0 {
		free, err := freeBytes(path)
		if err != nil {
			return fmt.Errorf("read free space of %s: %w", path, err)
		}
		own, err := folderBytes(path)
		if err != nil {
			return err
		}
		limit = min(defaultSpool, (free+own)/2)
	}
	g.space = spool.NewSpace(limit, min(mostReserve, limit/16), func() (int64, error) { return freeBytes(path) })
	return nil
}

// openSpool opens a stream's spool. Dead letters have none: their backend is on the same disk, and what goes to them is in
// the spool of their stream until it has arrived.
func (g *Gateway) openSpool(name string) (*spool.Spool, error) {
	if _, dead := deadLetterOf(name); dead {
		return nil, nil
	}
	files, err := spool.Folder(g.folder.spoolFolder(name))
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	return spool.New(spool.Config{Stream: name}, spool.Deps{Files: files, Space: g.space, Log: g.log})
}

// spoolEnd is what a spool has to write what is left when its stream has ended.
const spoolEnd = 2 * time.Second

// runSpool runs the stream's spool until stop, which waits for it.
func (s *stream) runSpool() (stop func() error) {
	if s.spool == nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.spool.Run(ctx) }()
	return func() error {
		defer cancel()
		s.spool.Close()
		defer time.AfterFunc(spoolEnd, cancel).Stop()
		return <-done
	}
}

// discard closes the files of a stream that does not start after all.
func (s *stream) discard() error {
	s.delivery.close()
	if s.spool == nil {
		return nil
	}
	s.spool.Close()
	return s.spool.Run(context.Background())
}

// spooled returns how many events each stream's spool has.
func (g *Gateway) spooled() map[string]int {
	all := map[string]int{}
	for name, s := range *g.streams.Load() {
		if s.spool == nil {
			continue
		}
		if n := s.spool.Stats().Events; n > 0 {
			all[name] = n
		}
	}
	return all
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
			note = fmt.Sprintf("stream %s: %d events (%s) wait for the backend, the oldest for %v", name, st.Events,
				settings.Bytes(st.Bytes), time.Since(st.Oldest).Round(time.Second))
		} else if st.Damaged > 0 && note == "" {
			note = fmt.Sprintf("stream %s: %d damaged ranges are in the quarantine of the spool", name, st.Damaged)
		}
	}
	return fault, note
}

// spoolMetrics exports the figures of all spools.
type spoolMetrics struct{ g *Gateway }

func spoolDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"stream"}, nil)
}

var (
	spoolBytes    = spoolDesc("headgate_spool_bytes", "Bytes of the spool's files.")
	spoolFrames   = spoolDesc("headgate_spool_frames", "Frames in the spool that the backend has not confirmed.")
	spoolEvents   = spoolDesc("headgate_spool_events", "Events in these frames.")
	spoolOldest   = spoolDesc("headgate_spool_oldest_seconds", "Age of the oldest file with such a frame; 0 when there is none.")
	spoolWritten  = spoolDesc("headgate_spool_written_frames_total", "Frames written to the spool.")
	spoolSyncs    = spoolDesc("headgate_spool_syncs_total", "Groups of frames written and synced together.")
	spoolSyncTime = spoolDesc("headgate_spool_sync_seconds_total", "Time that took.")
	spoolFailed   = spoolDesc("headgate_spool_failed_writes_total", "Writes that failed, after which a new file was begun.")
	spoolDamaged  = spoolDesc("headgate_spool_quarantined_total", "Damaged ranges of bytes that were set aside in the quarantine.")
	spoolLimit    = prometheus.NewDesc("headgate_spool_max_bytes", "Bytes that all spools together may have.", nil, nil)
)

// Describe is for the registry.
func (m spoolMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{spoolBytes, spoolFrames, spoolEvents, spoolOldest, spoolWritten, spoolSyncs, spoolSyncTime,
		spoolFailed, spoolDamaged, spoolLimit} {
		ch <- d
	}
}

// Collect is for the registry.
func (m spoolMetrics) Collect(ch chan<- prometheus.Metric) {
	if m.g.space == nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(spoolLimit, prometheus.GaugeValue, float64(m.g.space.Limit()))
	for name, s := range *m.g.streams.Load() {
		if s.spool == nil {
			continue
		}
		st := s.spool.Stats()
		oldest := 0.0
		if !st.Oldest.IsZero() {
			oldest = time.Since(st.Oldest).Seconds()
		}
		for d, v := range map[*prometheus.Desc]float64{
			spoolBytes: float64(st.Bytes), spoolFrames: float64(st.Frames), spoolEvents: float64(st.Events), spoolOldest: oldest,
		} {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, name)
		}
		for d, v := range map[*prometheus.Desc]float64{
			spoolWritten: float64(st.Written), spoolSyncs: float64(st.Groups), spoolSyncTime: st.Syncs.Seconds(),
			spoolFailed: float64(st.Failed), spoolDamaged: float64(st.Damaged),
		} {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, name)
		}
	}
}

// run delivers until the forwarder is closed and empty, or what is left is safe in the spool, or ctx ends.
func (s *stream) run(ctx context.Context) error {
	defer close(s.done)
	defer s.delivery.close()
	stopSpool := s.runSpool()
	err := s.forwarder.Run(ctx)
	if err = errors.Join(err, stopSpool()); err != nil {
		return fmt.Errorf("stream %s: %w", s.name, err)
	}
	return nil
}

func (s *stream) inTrouble() bool {
	code, _ := s.forwarder.Trouble()
	return code != ""
}
