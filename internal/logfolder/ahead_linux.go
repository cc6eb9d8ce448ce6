package logfolder

import "golang.org/x/sys/unix"

// ask has the file system set n bytes aside behind off, without making the file larger. Where it can't, writes find their space
// as they go, or fail.
func (f *file) ask(off, n int64) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.Fallocate(int(fd), unix.FALLOC_FL_KEEP_SIZE, off, n) })
}
