package gateway

import (
	"context"
	"fmt"
	"os"
	"time"
)

// watchEvery is how often it is looked whether the data folder is still there: what is acknowledged in between goes into
// files that nobody will find.
const watchEvery = time.Second

// watch returns an error when the data folder, or one of the stores in it, is removed or replaced; nil when ctx ends.
func (f *folder) watch(ctx context.Context) error {
	known := map[string]os.FileInfo{}
	for _, name := range []string{"lock", "control", "jetstream", "spool"} {
		info, err := os.Stat(f.file(name))
		if err != nil {
			return fmt.Errorf("watch the data folder: %w", err)
		}
		known[name] = info
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for name, was := range known {
			if is, err := os.Stat(f.file(name)); err != nil && os.IsNotExist(err) || err == nil && !os.SameFile(was, is) {
				return fmt.Errorf("%s was removed or replaced while the gateway ran: nothing that is stored now would be found again; "+
					"put the data folder back and start the gateway again, and let producers send again what was acknowledged since", f.file(name))
			}
		}
	}
}
