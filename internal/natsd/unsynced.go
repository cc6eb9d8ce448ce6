package natsd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/headgate-io/headgate/internal/wholefile"
)

// writeAgain writes the newest block of every stream again, to a new file. After a sync that failed the system may take for
// written what is in memory only: it is read back like anything else, a later sync says that all is well, and a power cut
// takes it, while the lane that finds its run there counts it as confirmed.
func writeAgain(dir string) error {
	folders, err := filepath.Glob(filepath.Join(escaped(dir), "jetstream", "*", "streams", "*", "msgs"))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		s := &streamFiles{folder: folder}
		if err := s.list(); err != nil {
			return err
		}
		if len(s.numbers) == 0 {
			continue
		}
		path := s.path(slices.Max(s.numbers))
		content, err := os.ReadFile(path)
		if err == nil {
			err = wholefile.Write(path, content)
		}
		if err != nil {
			return fmt.Errorf("write a block again whose sync may have failed: %w", err)
		}
	}
	return nil
}
