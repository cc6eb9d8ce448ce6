//go:build unix

package datafolder

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes the lock that one process at a time can hold and that ends with it, however it ends.
func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// DiskBytes returns the size of the file system of path.
func DiskBytes(path string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, err
	}
	return int64(st.Blocks) * int64(st.Bsize), nil
}

// FreeBytes returns how much an unprivileged process can still write to the file system of path.
func FreeBytes(path string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}
