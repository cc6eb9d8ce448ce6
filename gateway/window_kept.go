package gateway

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/ingest"
	"github.com/headgate-io/headgate/internal/journal"
	"github.com/headgate-io/headgate/internal/logfolder"
)

// remember reads back what an earlier process left of a window or of sessions, and has it kept from now on. Nothing keeps it from
// starting: what can't be read is forgotten, which the log and how far back the window reaches say.
func (g *Gateway) remember(w ingest.Memory, path string) *journal.Journal {
	now := time.Now()
	log := g.log.With("folder", path)
	j, whole, err := journal.Open(journal.Deps{Files: logfolder.At(path), Snapshot: w.Snapshot, Log: log},
		func(record []byte) { w.Restore(record, now) })
	if err != nil {
		log.Error("what an earlier process remembered of repetitions can't be read and is forgotten", "error", err)
	}
	w.Keep(j, whole, now)
	return j
}

// runJournal keeps a journal, nil for none, until stop, which waits for it. What fails is in the log, and costs nobody an event.
func runJournal(j *journal.Journal) (stop func()) {
	if j == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = j.Run(ctx) }()
	return func() { cancel(); <-done }
}
