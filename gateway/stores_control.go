package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headgate-io/headgate/control"
	"github.com/headgate-io/headgate/gateway/datafolder"
	"github.com/headgate-io/headgate/internal/natsd"
	"github.com/headgate-io/headgate/internal/wholefile"
)

// controlBytes bounds the control store: 64 modules of 8 MiB, and small documents.
const controlBytes = 1 << 30

// controlStore is the control server, and the store on it.
type controlStore struct {
	server *natsd.Server
	conn   *nats.Conn
	store  *control.Store
	note   string // what an operator should know about how it was opened
}

// openControl opens the store, with a copy of all changes in DIR/state. A store that does not open, or has less than
// the copy, is set aside and made again from it.
func openControl(ctx context.Context, f *datafolder.Folder, log *slog.Logger) (*controlStore, error) {
	files, err := control.OpenFiles(f.File("state"), log)
	if err != nil {
		return nil, err
	}
	c, err := startControl(ctx, f, log)
	if err == nil {
		if err = c.store.Check(ctx, files); err != nil {
			c.close()
		}
	}
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, natsd.ErrNotReady) {
			return nil, err
		}
		if files.Empty() {
			return nil, fmt.Errorf("%w; there is no copy in %s: put back one of the two folders from a backup", err, f.File("state"))
		}
		if c, err = rebuildControl(ctx, f, files, err, log); err != nil {
			return nil, err
		}
	}
	if err := c.store.Keep(ctx, files); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func startControl(ctx context.Context, f *datafolder.Folder, log *slog.Logger) (c *controlStore, err error) {
	c = &controlStore{}
	c.server, err = natsd.Start(ctx, natsd.Config{Name: "control-" + f.ID, Dir: f.File("control"), MaxStore: controlBytes, Free: f.Free, Need: f.Reserve / 2}, log)
	if err == nil {
		c.conn, err = c.server.Connect("control")
	}
	if err == nil {
		c.store, err = control.Open(ctx, c.conn)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// rebuildControl makes a new store from the copy. Nothing is touched unless the whole copy can be read.
func rebuildControl(ctx context.Context, f *datafolder.Folder, files *control.Files, why error, log *slog.Logger) (*controlStore, error) {
	if err := files.Whole(); err != nil {
		return nil, fmt.Errorf("the control store is unusable (%w), and so is its copy: %w; put back %s and %s from a backup",
			why, err, f.File("control"), f.File("state"))
	}
	aside := f.File("control.damaged-" + time.Now().UTC().Format("20060102T150405.000"))
	err := os.Rename(f.File("control"), aside)
	if err == nil {
		err = wholefile.SyncFolder(f.Path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("set the damaged control store aside: %w", err)
	}
	c, err := startControl(ctx, f, log)
	if err != nil {
		return nil, err
	}
	if err := c.store.Restore(ctx, files); err != nil {
		c.close()
		return nil, err
	}
	c.note = fmt.Sprintf("rebuilt from %s, because %v; the old one is %s: delete it when nothing is missing", f.File("state"), why, aside)
	log.Error("THE CONTROL STORE WAS LOST OR DAMAGED and has been rebuilt from its copy", "cause", why, "copy", f.File("state"), "set_aside", aside)
	return c, nil
}

func (c *controlStore) close() {
	if c.conn != nil {
		c.conn.Close()
	}
	if c.server != nil {
		c.server.Close()
	}
}
