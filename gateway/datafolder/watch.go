package datafolder

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/headgate-io/headgate/forward/spool"
)

// watchEvery is how often it is looked whether the data folder is still there: what is acknowledged in between goes into
// files that nobody will find.
const watchEvery = time.Second

// Watch returns an error when the data folder, or the control store in it, is removed or replaced; nil when ctx ends. The server
// of the events watches over its store itself. The spools that are open make good themselves what is removed of them, and are
// told to look.
func (f *Folder) Watch(ctx context.Context, spools func() []*spool.Spool) error {
	known := map[string]os.FileInfo{}
	for _, name := range []string{"lock", "control"} {
		info, err := os.Stat(f.File(name))
		if err != nil {
			return fmt.Errorf("watch the data folder: %w", err)
		}
		known[f.File(name)] = info
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		for path, was := range known {
			if _, err := still(path, was); err != nil {
				return err
			}
		}
		for _, s := range spools() {
			s.Check()
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
