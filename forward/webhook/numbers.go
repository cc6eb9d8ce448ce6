package webhook

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/internal/wholefile"
)

// numbers keeps a lane's numbers, of which frame ids are made, from coming twice under one gateway id: a node may
// take an id that it knows for a repetition and drop what is new.
//
// A node can't be asked where a lane ended, so a file says up to which number any lane may have gone. It is written
// before numbers beyond it are sent, in steps: a process goes on behind what the last one reserved, and leaves a gap
// of less than a step. Without the file, or with a damaged one, the clock in microseconds since 1970 is the
// beginning: no lane that carried less than a million events a second can have come so far, whoever deleted
// the file and when. A clock alone would not do: it can be set back.
type numbers struct {
	path  string
	first uint64 // lanes of this process go on behind it

	mu       sync.Mutex // held while the file is written
	reserved atomic.Uint64
}

// step is small enough for restarts not to outrun the clock in microseconds (unless there is one every 17 s for
// good) and large enough for the file to be written rarely.
const step = 1 << 24

func openNumbers(path string, now time.Time, log *slog.Logger) (*numbers, error) {
	first, err := readNumbers(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		first = uint64(now.UnixMicro())
	case errors.Is(err, errDamaged):
		first = uint64(now.UnixMicro())
		log.Warn("the file of numbers is damaged: lanes begin at the time of day", "file", path, "first", first)
	case err != nil:
		return nil, err
	}
	n := &numbers{path: path, first: first}
	n.reserved.Store(first)
	return n, n.cover(first + 1)
}

// cover returns when last is a number that no later process will use.
func (n *numbers) cover(last uint64) error {
	if last <= n.reserved.Load() {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if last <= n.reserved.Load() {
		return nil
	}
	if err := wholefile.Write(n.path, []byte(render(last+step))); err != nil {
		return fmt.Errorf("reserve numbers: %w", err)
	}
	n.reserved.Store(last + step)
	return nil
}

var errDamaged = errors.New("damaged")

// format is a number and a checksum over its 20 digits.
const format = "%020d %08x\n"

func readNumbers(path string) (first uint64, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscanf(string(text), "%d", &first); err != nil || string(text) != render(first) {
		return 0, errDamaged
	}
	return first, nil
}

func render(first uint64) string {
	return fmt.Sprintf(format, first, crc32.ChecksumIEEE(fmt.Appendf(nil, "%020d", first)))
}
