package datafolder

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// BytesIn adds up the files below a folder, which may be missing.
func BytesIn(path string) (sum int64, err error) {
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return sum, err
}
