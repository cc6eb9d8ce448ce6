// Package datafolder is the folder of one gateway: its lock, its identity, which files are where in it, and the room on its disk.
// What the stores keep there is theirs.
package datafolder

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/headgate-io/headgate/internal/wholefile"
)

// Folder is the data folder of one gateway: locked while it runs, with an identity that is made once.
type Folder struct {
	Path string
	ID   string // 16 hex digits: the {gateway} of subjects and frames
	lock *os.File

	Reserve int64 // bytes that the spool leaves free on the disk
}

// Free returns how many bytes the disk has left.
func (f *Folder) Free() (int64, error) { return FreeBytes(f.Path) }

// Room returns how many of these the embedded backend may take: the spool needs some when that is full.
func (f *Folder) Room() (int64, error) {
	free, err := f.Free()
	return free - 2*f.Reserve, err
}

// LockedError says that another process uses the data folder.
type LockedError struct {
	Path string
	PID  string // of the process that holds it, where known
}

// Error names the process.
func (e *LockedError) Error() string {
	return fmt.Sprintf("data folder %s is in use by process %s; stop it, or name another folder (serve --data)", e.Path, e.PID)
}

// Open makes the folder where needed, locks it and reads or makes its identity.
func Open(path string) (*Folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w; make it for the user that the gateway runs as, or name another folder (serve --data)", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open data folder: %w; it must belong to the user that the gateway runs as, or name another folder (serve --data)", err)
	}
	if err := lockFile(lock); err != nil {
		held, _ := os.ReadFile(lock.Name())
		lock.Close()
		return nil, &LockedError{Path: path, PID: strings.TrimSpace(string(held))}
	}
	f := &Folder{Path: path, lock: lock}
	f.giveReserve()
	if err := errors.Join(f.writePID(), f.identify()); err != nil {
		lock.Close()
		return nil, err
	}
	return f, nil
}

func (f *Folder) writePID() error {
	if err := f.lock.Truncate(0); err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	_, err := f.lock.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	if errors.Is(err, syscall.ENOSPC) { // only who else asks for the folder would read it
		return nil
	}
	return err
}

// identify reads the identity, or makes it in a folder without data. It is kept twice, since under another one the lanes
// would begin anew: nothing that is stored would belong to them.
func (f *Folder) identify() error {
	path, second := f.File("id"), f.File(filepath.Join("state", "id"))
	id, err := readID(path)
	kept, errKept := readID(second)
	switch {
	case err == nil && errKept == nil && id != kept:
		return fmt.Errorf("%s says %s and %s says %s; put the one that the data was written under (it ends every subject, and tail -o json shows it as gateway) into both", path, id, second, kept)
	case err == nil && errKept == nil:
		f.ID = id
		return nil
	case err == nil: // the second is from before there was one, or lost
		f.ID = id
		return f.keepID(second)
	case errKept == nil:
		return fmt.Errorf("%w; the data was written under %s: `echo %[2]s > %s` goes on with it; a new gateway needs an empty folder", err, kept, path)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w; put back the id that the data was written under (it ends every subject, and tail -o json shows it as gateway)", err)
	case f.inUse() != "":
		return fmt.Errorf("%s is missing beside data (%s); put back the id that the data was written under (it ends every subject), or give --data an empty folder", path, f.inUse())
	}
	raw := make([]byte, 8)
	if _, err := rand.Read(raw); err != nil {
		return fmt.Errorf("make gateway id: %w", err)
	}
	f.ID = hex.EncodeToString(raw)
	return errors.Join(f.keepID(path), f.keepID(second))
}

// readID reads a file that holds an identity.
func readID(path string) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", missingError(path)
	}
	if err != nil {
		return "", fmt.Errorf("gateway id: %w", err)
	}
	id := strings.TrimSpace(string(text))
	if raw, err := hex.DecodeString(id); err != nil || len(raw) != 8 {
		return "", fmt.Errorf("%s is damaged: want 16 hex digits, found %q", path, id)
	}
	return id, nil
}

// missingError is a file that is not there.
type missingError string

func (e missingError) Error() string { return string(e) + " is missing" }

// Is makes it an fs.ErrNotExist.
func (e missingError) Is(target error) bool { return target == fs.ErrNotExist }

func (f *Folder) keepID(path string) error {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = wholefile.Write(path, []byte(f.ID+"\n"))
	}
	if err != nil {
		return fmt.Errorf("keep gateway id: %w", err)
	}
	return nil
}

// inUse names what there is of a gateway's data, "" for nothing.
func (f *Folder) inUse() string {
	for _, name := range []string{"jetstream", "control", "webhook", "state"} {
		if entries, err := os.ReadDir(f.File(name)); err == nil && len(entries) > 0 {
			return name
		}
	}
	return ""
}

// running is what DIR/run.json tells other programs while the gateway is ready.
type Running struct {
	PID     int    `json:"pid"`
	HTTP    string `json:"http"`
	HTTPS   string `json:"https"`
	Admin   string `json:"admin"`
	QUIC    string `json:"quic"` // UDP; empty without
	Version string `json:"version"`
}

// Announce writes DIR/run.json.
func (f *Folder) Announce(r Running) error {
	doc, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return wholefile.Write(f.File("run.json"), append(doc, '\n'))
}

// File is the path of what has that name in the folder.
func (f *Folder) File(name string) string { return filepath.Join(f.Path, name) }

// Close takes the announcement back and unlocks the folder.
func (f *Folder) Close() {
	os.Remove(f.File("run.json"))
	f.lock.Close()
}

// WindowFolder has what is remembered of repetitions: a folder for the ids of each stream, and one for the answers by
// idempotency key.
func (f *Folder) WindowFolder(names ...string) string {
	return f.File(filepath.Join(append([]string{"window"}, names...)...))
}
