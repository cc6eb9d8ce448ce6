package gateway

import (
	"context"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/headgate-io/headgate/forward/spool"
)

// watchEvery is how often it is looked whether the data folder is still there: what is acknowledged in between goes into
// files that nobody will find.
const watchEvery = time.Second

// watch returns an error when the data folder, one of the stores in it, or the folder of a stream's spool is removed or
// replaced; nil when ctx ends. spools says which spools are open, and where.
func (f *folder) watch(ctx context.Context, spools func() map[*spool.Spool]string) error {
	known := map[string]os.FileInfo{}
	for _, name := range []string{"lock", "control", "jetstream", "spool"} {
		info, err := os.Stat(f.file(name))
		if err != nil {
			return fmt.Errorf("watch the data folder: %w", err)
		}
		known[f.file(name)] = info
	}
	seen := map[*spool.Spool]os.FileInfo{}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		for path, was := range known {
			if _, err := still(path, was); err != nil {
				return err
			}
		}
		open := spools()
		maps.DeleteFunc(seen, func(s *spool.Spool, _ os.FileInfo) bool { return open[s] == "" })
		for s, path := range open {
			is, err := still(path, seen[s])
			if err != nil {
				return err
			}
			seen[s] = is
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// still returns what is at a path, or an error when that is not what was there, if anything is known of that.
func still(path string, was os.FileInfo) (os.FileInfo, error) {
	is, err := os.Stat(path)
	switch {
	case err != nil && !os.IsNotExist(err):
		return was, nil // who can't be asked now may be next time
	case err != nil || was != nil && !os.SameFile(was, is):
		return nil, fmt.Errorf("%s was removed or replaced while the gateway ran: nothing that is stored now would be found again; "+
			"put the data folder back and start the gateway again, and let producers send again what was acknowledged since", path)
	}
	return is, nil
}

// spoolFolders says which spools are open, and where.
func (g *Gateway) spoolFolders() map[*spool.Spool]string {
	open := map[*spool.Spool]string{}
	for name, s := range *g.streams.Load() {
		if s.spool != nil {
			open[s.spool] = g.folder.spoolFolder(name)
		}
	}
	return open
}
