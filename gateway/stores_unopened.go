package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/headgate-io/headgate/gateway/datafolder"
	"github.com/headgate-io/headgate/internal/natsd"
	"github.com/headgate-io/headgate/internal/wholefile"
)

// stuckName is a file that says that the embedded backend did not open in time, so that the next start does not try again.
const stuckName = "jetstream.stuck"

// startEvents starts the embedded backend. A store that does not open is set aside and made new: the spool takes no events into a
// gateway that does not start, and has what can be put back.
func (s *stores) startEvents(ctx context.Context, f *datafolder.Folder, cfg natsd.Config, log *slog.Logger) error {
	stuck := f.File(stuckName)
	_, err := os.Stat(stuck)
	why := errors.New("it did not open in time at the last start")
	if errors.Is(err, fs.ErrNotExist) {
		if s.events, why = natsd.Start(ctx, cfg, log); why == nil {
			return nil
		}
	}
	switch {
	case ctx.Err() != nil || natsd.Empty(cfg.Dir) || notItsFault(why):
		return why
	case errors.Is(why, natsd.ErrNotReady): // it is still at it, and cannot be stopped
		if err := wholefile.Write(stuck, []byte(why.Error()+"\n")); err != nil {
			return errors.Join(why, err)
		}
		return fmt.Errorf("%w; the next start sets this store aside and makes a new one; to let it try again, delete %s", why, stuck)
	}
	aside := cfg.Dir + ".unopened-" + time.Now().UTC().Format("20060102T150405.000")
	undo, err := natsd.SetAside(cfg.Dir, aside)
	if err != nil {
		return errors.Join(why, fmt.Errorf("set the store aside: %w", err))
	}
	if s.events, err = natsd.Start(ctx, cfg, log); err != nil {
		return errors.Join(why, undo())
	}
	log.Error("THE EMBEDDED BACKEND DID NOT OPEN: its store is set aside, and a new one is filled with what the spool still has",
		"cause", why, "set_aside", aside)
	s.note = fmt.Sprintf("the embedded backend did not open (%v): what it held is in %s; delete that when it is dealt with", why, aside)
	if err := os.Remove(stuck); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("a mark of the last start can't be removed: the next one sets the store aside again", "file", stuck, "error", err)
	}
	return nil
}

// notItsFault tells an error of the disk, or of who may use it, from one of what is stored.
func notItsFault(err error) bool {
	for _, e := range []error{syscall.ENOSPC, syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.EDQUOT} {
		if errors.Is(err, e) || strings.Contains(err.Error(), e.Error()) { // the server's own errors are texts
			return true
		}
	}
	return false
}
