//go:build !linux

package natsd

import "os"

// deletedFiles is not to be had here.
func deletedFiles(string) map[string]*os.File { return nil }
