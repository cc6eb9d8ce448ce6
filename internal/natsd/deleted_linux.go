package natsd

import (
	"os"
	"path/filepath"
	"strings"
)

// deletedFiles opens the message blocks below a folder that were deleted and that this process still has open: as long as it does,
// what was written to them is there.
func deletedFiles(dir string) map[string]*os.File {
	const fds, mark = "/proc/self/fd", " (deleted)"
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir(fds)
	if err != nil {
		return nil
	}
	all := map[string]*os.File{}
	for _, e := range entries {
		path, err := os.Readlink(filepath.Join(fds, e.Name()))
		path, deleted := strings.CutSuffix(path, mark)
		if err != nil || !deleted || !strings.HasPrefix(path, dir+"/") || filepath.Ext(path) != ".blk" || all[path] != nil {
			continue
		}
		if f, err := os.Open(filepath.Join(fds, e.Name())); err == nil {
			all[path] = f
		}
	}
	return all
}
