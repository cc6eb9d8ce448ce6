package gateway

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/internal/journal"
	"github.com/headgate-io/headgate/internal/window"
)

// remembered is a window that survives restarts: a *window.Set or *window.Keys.
type remembered interface {
	Restore(record []byte, now time.Time)
	Keep(log window.Log, whole bool, now time.Time)
	Snapshot(emit func(record []byte) error) error
}

// remember reads back what an earlier process left of a window, and has it kept from now on. Nothing keeps it from
// starting: what can't be read is forgotten, which the log and how far back the window reaches say.
func (g *Gateway) remember(w remembered, path string) *journal.Journal {
	now := time.Now()
	log := g.log.With("folder", path)
	j, whole, err := journal.Open(journal.Deps{Files: &windowFiles{path: path}, Snapshot: w.Snapshot, Log: log},
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

// windowFiles is a folder that is made when the first file is. Its files are like those of a spool.
type windowFiles struct {
	path string

	mu    sync.Mutex
	files spool.Files
}

func (f *windowFiles) folder() (spool.Files, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files != nil {
		return f.files, nil
	}
	files, err := spool.Folder(f.path)
	if err != nil {
		return nil, err
	}
	f.files = files
	return files, nil
}

// List implements journal.Files.
func (f *windowFiles) List() (all []journal.Info, err error) {
	if _, err := os.Stat(f.path); os.IsNotExist(err) {
		return nil, nil
	}
	files, err := f.folder()
	if err != nil {
		return nil, err
	}
	infos, err := files.List()
	for _, i := range infos {
		all = append(all, journal.Info(i))
	}
	return all, err
}

// Open implements journal.Files.
func (f *windowFiles) Open(name string, create bool) (journal.File, error) {
	files, err := f.folder()
	if err != nil {
		return nil, err
	}
	return files.Open(name, create)
}

// Remove implements journal.Files.
func (f *windowFiles) Remove(name string) error {
	files, err := f.folder()
	if err != nil {
		return err
	}
	return files.Remove(name)
}
