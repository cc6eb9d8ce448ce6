package gateway

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/forward/spool"
)

// F11: the folder of one stream's spool is watched while the stream is there, like the folder that it is in.
func TestF11TheFolderOfASpoolIsWatched(t *testing.T) {
	top := t.TempDir()
	f := &folder{path: top}
	for _, name := range []string{"lock", "control", "jetstream", "spool/web", "spool/old", "spool/late"} {
		if err := os.MkdirAll(filepath.Join(top, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(stream string) {
		if err := os.RemoveAll(f.spoolFolder(stream)); err != nil {
			t.Fatal(err)
		}
	}
	for _, replaced := range []bool{false, true} {
		if err := os.MkdirAll(f.spoolFolder("web"), 0o700); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			open := map[*spool.Spool]string{{}: f.spoolFolder("web")}
			old := new(spool.Spool)
			open[old] = f.spoolFolder("old")
			ended := make(chan error, 1)
			var mu sync.Mutex // guards open
			inUse := func() map[*spool.Spool]string {
				mu.Lock()
				defer mu.Unlock()
				return maps.Clone(open)
			}
			go func() { ended <- f.watch(t.Context(), inUse) }()
			synctest.Wait()
			mu.Lock()
			delete(open, old) // its stream is no more
			open[new(spool.Spool)] = f.spoolFolder("late")
			mu.Unlock()
			remove("old")
			<-time.After(3 * watchEvery)
			select {
			case err := <-ended:
				t.Fatal("nothing was removed that is in use:", err)
			default:
			}
			remove("web")
			if replaced {
				if err := os.WriteFile(f.spoolFolder("web"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "spool/web was removed or replaced") {
				t.Errorf("ended with %v", err)
			}
		})
		remove("web")
		if err := os.MkdirAll(f.spoolFolder("old"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.watch(ctx, func() map[*spool.Spool]string { return nil }); err != nil {
		t.Error(err)
	}
}
