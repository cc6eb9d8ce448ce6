package plugins

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// WASI error numbers.
const (
	wasiSuccess  = 0
	wasiBadFile  = 8
	wasiFault    = 21
	wasiInvalid  = 28
	wasiRealtime = 0 // clock ids
	wasiMonotone = 1
)

// wasiFunctions is WASI preview 1 as guests get it: language runtimes start and run, and there is nothing to open.
// Go and C libraries import names they never call, so every name is there; those that are about files or
// sockets answer EBADF. Read only.
var wasiFunctions = map[string]hostFunction{
	"args_get":          {"ii", "i", wasiNone},
	"args_sizes_get":    {"ii", "i", wasiNoSizes},
	"environ_get":       {"ii", "i", wasiNone},
	"environ_sizes_get": {"ii", "i", wasiNoSizes},
	"clock_res_get":     {"ii", "i", wasiClockResolution},
	"clock_time_get":    {"iIi", "i", wasiClockTime},
	"random_get":        {"ii", "i", wasiRandom},
	"sched_yield":       {"", "i", wasiNone},
	"poll_oneoff":       {"iiii", "i", wasiPoll},
	"proc_exit":         {"i", "", wasiExit},
	"fd_write":          {"iiii", "i", wasiWrite},

	"proc_raise":              {"i", "i", wasiNoFile},
	"fd_advise":               {"iIIi", "i", wasiNoFile},
	"fd_allocate":             {"iII", "i", wasiNoFile},
	"fd_close":                {"i", "i", wasiNoFile},
	"fd_datasync":             {"i", "i", wasiNoFile},
	"fd_fdstat_get":           {"ii", "i", wasiNoFile},
	"fd_fdstat_set_flags":     {"ii", "i", wasiNoFile},
	"fd_fdstat_set_rights":    {"iII", "i", wasiNoFile},
	"fd_filestat_get":         {"ii", "i", wasiNoFile},
	"fd_filestat_set_size":    {"iI", "i", wasiNoFile},
	"fd_filestat_set_times":   {"iIIi", "i", wasiNoFile},
	"fd_pread":                {"iiiIi", "i", wasiNoFile},
	"fd_prestat_get":          {"ii", "i", wasiNoFile},
	"fd_prestat_dir_name":     {"iii", "i", wasiNoFile},
	"fd_pwrite":               {"iiiIi", "i", wasiNoFile},
	"fd_read":                 {"iiii", "i", wasiNoFile},
	"fd_readdir":              {"iiiIi", "i", wasiNoFile},
	"fd_renumber":             {"ii", "i", wasiNoFile},
	"fd_seek":                 {"iIii", "i", wasiNoFile},
	"fd_sync":                 {"i", "i", wasiNoFile},
	"fd_tell":                 {"ii", "i", wasiNoFile},
	"path_create_directory":   {"iii", "i", wasiNoFile},
	"path_filestat_get":       {"iiiii", "i", wasiNoFile},
	"path_filestat_set_times": {"iiiiIIi", "i", wasiNoFile},
	"path_link":               {"iiiiiii", "i", wasiNoFile},
	"path_open":               {"iiiiiIIii", "i", wasiNoFile},
	"path_readlink":           {"iiiiii", "i", wasiNoFile},
	"path_remove_directory":   {"iii", "i", wasiNoFile},
	"path_rename":             {"iiiiii", "i", wasiNoFile},
	"path_symlink":            {"iiiii", "i", wasiNoFile},
	"path_unlink_file":        {"iii", "i", wasiNoFile},
	"sock_accept":             {"iii", "i", wasiNoFile},
	"sock_recv":               {"iiiiii", "i", wasiNoFile},
	"sock_send":               {"iiiii", "i", wasiNoFile},
	"sock_shutdown":           {"ii", "i", wasiNoFile},
}

func wasiNone(_ *guest, _ api.Memory, stack []uint64) { stack[0] = wasiSuccess }

func wasiNoFile(_ *guest, _ api.Memory, stack []uint64) { stack[0] = wasiBadFile }

// errno is the WASI result of a call that touched the guest's memory: ok says whether all of it was there.
func errno(ok bool) uint64 {
	if ok {
		return wasiSuccess
	}
	return wasiFault
}

func wasiNoSizes(_ *guest, mem api.Memory, stack []uint64) {
	count, size := api.DecodeU32(stack[0]), api.DecodeU32(stack[1])
	stack[0] = errno(mem.WriteUint32Le(count, 0) && mem.WriteUint32Le(size, 0))
}

// clockStep is the resolution of the clocks. They must move: a runtime with a garbage collector paces itself by
// them, and with a clock that stands still Go guests leak. They need not be fine, and a coarse clock tells less.
const clockStep = time.Millisecond

func wasiClockResolution(_ *guest, mem api.Memory, stack []uint64) {
	stack[0] = errno(mem.WriteUint64Le(api.DecodeU32(stack[1]), uint64(clockStep)))
}

// wasiClockTime serves both clocks from the real time: a guest's monotonic clock counts from 1970, too.
func wasiClockTime(_ *guest, mem api.Memory, stack []uint64) {
	if id := api.DecodeU32(stack[0]); id != wasiRealtime && id != wasiMonotone {
		stack[0] = wasiInvalid
		return
	}
	now := time.Now().Truncate(clockStep).UnixNano()
	stack[0] = errno(mem.WriteUint64Le(api.DecodeU32(stack[2]), uint64(now)))
}

func wasiRandom(g *guest, mem api.Memory, stack []uint64) {
	const atOnce = 1 << 20
	p, ok := mem.Read(api.DecodeU32(stack[0]), api.DecodeU32(stack[1]))
	for ; len(p) > atOnce; p = p[atOnce:] {
		g.random.Read(p[:atOnce])
		g.check()
	}
	g.random.Read(p)
	stack[0] = errno(ok)
}

// wasiPoll says that everything waited for has happened: a guest never sleeps.
func wasiPoll(_ *guest, mem api.Memory, stack []uint64) {
	const subscriptionSize, eventSize, most = 48, 32, 1024
	n := api.DecodeU32(stack[2])
	if n > most {
		stack[0] = wasiInvalid
		return
	}
	in, ok := readArray(mem, api.DecodeU32(stack[0]), n, subscriptionSize)
	out, ok2 := readArray(mem, api.DecodeU32(stack[1]), n, eventSize)
	if !ok || !ok2 || !mem.WriteUint32Le(api.DecodeU32(stack[3]), n) {
		stack[0] = wasiFault
		return
	}
	clear(out)
	for i := range int(n) {
		subscription, event := in[i*subscriptionSize:], out[i*eventSize:]
		copy(event[:8], subscription[:8]) // user data
		if event[10] = subscription[8]; event[10] != 0 {
			event[8] = wasiBadFile // not a clock: a file, and there are none
		}
	}
	stack[0] = wasiSuccess
}

func readArray(mem api.Memory, ptr, n, size uint32) ([]byte, bool) {
	if bytes := uint64(n) * uint64(size); bytes <= uint64(mem.Size()) {
		return mem.Read(ptr, uint32(bytes))
	}
	return nil, false
}

// exit is what proc_exit panics with: leaving is a trap like any other, the instance is not used again.
type exit struct{ code uint32 }

func (e exit) Error() string { return fmt.Sprintf("the guest exited with code %d", e.code) }

func wasiExit(_ *guest, _ api.Memory, stack []uint64) { panic(exit{api.DecodeU32(stack[0])}) }

// wasiWrite sends what is written to standard output and error to the log.
func wasiWrite(g *guest, mem api.Memory, stack []uint64) {
	level := slog.LevelInfo
	switch fd := api.DecodeU32(stack[0]); fd {
	case 1:
	case 2:
		level = slog.LevelWarn
	default:
		stack[0] = wasiBadFile
		return
	}
	n, ok := g.writeVectors(mem, level, stack)
	stack[0] = errno(ok && mem.WriteUint32Le(api.DecodeU32(stack[3]), n))
}

// mostWritten is how many bytes one fd_write takes; what is more is not written, as with a full pipe.
const mostWritten = 64 << 10

func (g *guest) writeVectors(mem api.Memory, level slog.Level, stack []uint64) (written uint32, ok bool) {
	const vectorSize = 8
	vectors, ok := readArray(mem, api.DecodeU32(stack[1]), api.DecodeU32(stack[2]), vectorSize)
	for ; ok && len(vectors) > 0 && written < mostWritten; vectors = vectors[vectorSize:] {
		var p []byte
		if p, ok = mem.Read(u32(vectors, 0), u32(vectors, 4)); ok {
			p = p[:min(len(p), mostWritten-int(written))]
			g.write(level, p)
			written += uint32(len(p))
		}
	}
	return written, ok
}
