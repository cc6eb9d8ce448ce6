//go:build !linux

package datafolder

import (
	"errors"
	"os"
)

// allocate is not to be had here.
func allocate(*os.File, int64, int64) error { return errors.ErrUnsupported }
