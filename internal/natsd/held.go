package natsd

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mostHeld bounds the files that are held open, the newest blocks of each stream: some 2 GiB of blocks of 8 MiB.
const mostHeld = 256

// handle is a file of the store that is held open: should it be removed, all that is in it can still be read.
type handle struct {
	file *os.File
	is   os.FileInfo // as it was at the last look
}

// hold opens what is to be held and closes what is not any more.
func (f *files) hold() {
	if f.held == nil {
		f.held = map[string]handle{}
	}
	want := map[string]bool{}
	for _, pattern := range []string{filepath.Join(escaped(f.dir), "*.json"), filepath.Join(escaped(f.dir), "jetstream", "*", "streams", "*", "meta.*")} {
		paths, _ := filepath.Glob(pattern) // the pattern is a good one
		for _, path := range paths {
			want[path] = true
		}
	}
	each := mostHeld / max(len(f.blocks), 1)
	for folder, blocks := range f.blocks {
		for _, name := range []string{metaName, metaSumName} { // also of a stream that has gone
			want[filepath.Join(filepath.Dir(folder), name)] = true
		}
		numbers := slices.Sorted(maps.Keys(blocks))
		for _, n := range numbers[max(0, len(numbers)-each):] {
			want[blockPath(folder, n)] = true
		}
	}
	for path, h := range f.held {
		if !want[path] {
			h.file.Close()
			delete(f.held, path)
		}
	}
	for path := range want {
		f.keep(path)
	}
}

// peek holds the blocks that have come since the last look, which the server closes as soon as they are full.
func (f *files) peek() {
	for folder, blocks := range f.blocks {
		next := 0
		for n := range blocks {
			next = max(next, n+1)
		}
		for ; f.held != nil; next++ {
			path := blockPath(folder, next)
			if f.keep(path); f.held[path].file == nil {
				break
			}
			blocks[next] = 0
		}
	}
}

// keep holds the file that is at a path now, or what was there when nothing is.
func (f *files) keep(path string) {
	h := f.held[path]
	is, err := os.Stat(path)
	if err != nil || !is.Mode().IsRegular() {
		return
	}
	if h.file != nil && os.SameFile(h.is, is) {
		f.held[path] = handle{h.file, is}
		return
	}
	file, err := os.Open(path)
	if err != nil {
		return
	}
	if is, err = file.Stat(); err != nil {
		file.Close()
		return
	}
	if h.file != nil {
		h.file.Close()
	}
	f.held[path] = handle{file, is}
}

// cut tells which streams have a block that was made shorter from outside: the server does that to the newest one only, and else
// writes another file.
func (f *files) cut() (streams []string) {
	for path, h := range f.held {
		if filepath.Ext(path) != ".blk" || f.newest(path) {
			continue
		}
		if is, err := os.Stat(path); err == nil && os.SameFile(h.is, is) && is.Size() < h.is.Size() {
			streams = append(streams, streamOf(path))
		}
	}
	return streams
}

func (f *files) newest(block string) bool {
	numbers := slices.Collect(maps.Keys(f.blocks[filepath.Dir(block)]))
	return len(numbers) == 0 || filepath.Base(block) == strconv.Itoa(slices.Max(numbers))+".blk"
}

func blockPath(folder string, n int) string { return filepath.Join(folder, strconv.Itoa(n)+".blk") }

// streamOf names the stream of a block.
func streamOf(block string) string { return filepath.Base(filepath.Dir(filepath.Dir(block))) }

// release gives up what is held, except what has no other name any more: that is returned, and the caller's to close.
func (f *files) release() map[string]*os.File {
	removed := map[string]*os.File{}
	for path, h := range f.held {
		if _, err := os.Stat(path); os.IsNotExist(err) {
			removed[path] = h.file
		} else {
			h.file.Close()
		}
	}
	f.held = nil
	return removed
}

// close gives up all that is known.
func (f *files) close() {
	for _, file := range f.release() {
		file.Close()
	}
	*f = files{dir: f.dir}
}

// removed returns all files of the store that were removed and that can still be read. What the server has open is newer than what
// is held where it was written to another file meanwhile.
func (s *Server) removed() map[string]*os.File {
	all := s.known.release()
	s.known.close() // it begins anew
	for path, file := range deletedFiles(s.cfg.Dir) {
		if held := all[path]; held != nil {
			held.Close()
		}
		all[path] = file
	}
	return all
}

// remakeFolders makes the folders again of streams that the server believes in, for what was removed of them.
func (s *Server) remakeFolders(removed map[string]*os.File, believed map[string]known) error {
	if err := os.Mkdir(s.cfg.Dir, 0o700); err != nil && !os.IsExist(err) {
		return err // the whole data folder has gone, or may not be written
	}
	for path := range removed {
		stream := streamOf(path)
		if strings.HasPrefix(filepath.Base(path), "meta.") {
			stream = filepath.Base(filepath.Dir(path))
		}
		if _, there := believed[stream]; !there {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// replaced tells whether another folder is where that of the store was.
func (s *Server) replaced() bool {
	is, err := os.Stat(s.cfg.Dir)
	return err == nil && s.folder != nil && !os.SameFile(s.folder, is)
}
