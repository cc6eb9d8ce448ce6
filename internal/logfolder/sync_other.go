//go:build !linux

package logfolder

// sync makes last what was written.
func (f *file) sync() error { return f.File.Sync() }
