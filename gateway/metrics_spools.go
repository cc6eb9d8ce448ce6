package gateway

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// spoolMetrics exports the figures of all spools.
type spoolMetrics struct{ g *Gateway }

var (
	spoolBytes    = streamDesc("headgate_spool_bytes", "Bytes of the spool's files.")
	spoolFrames   = streamDesc("headgate_spool_frames", "Frames in the spool that the backend has not confirmed.")
	spoolEvents   = streamDesc("headgate_spool_events", "Events in these frames.")
	spoolOldest   = streamDesc("headgate_spool_oldest_seconds", "Age of the oldest file with such a frame; 0 when there is none.")
	spoolWritten  = streamDesc("headgate_spool_written_frames_total", "Frames written to the spool.")
	spoolSyncs    = streamDesc("headgate_spool_syncs_total", "Groups of frames written and synced together.")
	spoolSyncTime = streamDesc("headgate_spool_sync_seconds_total", "Time that took.")
	spoolFailed   = streamDesc("headgate_spool_failed_writes_total", "Writes that failed, after which a new file was begun.")
	spoolDamaged  = streamDesc("headgate_spool_quarantined_total", "Damaged ranges of bytes that were set aside in the quarantine.")
	spoolMissing  = streamDesc("headgate_spool_missing_events_total", "Events that were written to the spool and not delivered, and were not in its files at the start, at most; after a power cut, without what was written in its last seconds.")
	spoolRemoved  = streamDesc("headgate_spool_removed_files_total", "Files of the spool that were removed or cut off: while they were in use, which loses nothing, or the whole folder before the start.")
	spoolLimit    = prometheus.NewDesc("headgate_spool_max_bytes", "Bytes that all spools together may have.", nil, nil)
)

// Describe is for the registry.
func (m spoolMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{spoolBytes, spoolFrames, spoolEvents, spoolOldest, spoolWritten, spoolSyncs, spoolSyncTime,
		spoolFailed, spoolDamaged, spoolMissing, spoolRemoved, spoolLimit} {
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
		oldest, gone := 0.0, 0.0
		if _, ok := m.g.spoolsGone.Load(name); ok {
			gone = 1
		}
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
			spoolMissing: float64(st.Missing), spoolRemoved: float64(st.Removed) + gone,
		} {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, name)
		}
	}
}
