package journal

import (
	"strings"

	"github.com/headgate-io/headgate/internal/logfolder"
)

// superseded returns how many of the oldest files a later snapshot has replaced. They are there when a crash, or a disk that
// removes nothing, came between the two, and must not be read: the snapshot does not say what had been taken back, and they
// may have lost that, since nobody synced them any more.
func (j *Journal) superseded() int {
	for i := len(j.old) - 1; i > 0; i-- {
		if !strings.HasSuffix(j.old[i].Name, kindSnapshot) {
			continue
		}
		f, err := j.readFile(j.old[i], func([]byte) {}, func(logfolder.File, string, int64, int64) {})
		if err == nil && f.ended && !f.damaged {
			return i
		}
	}
	return 0
}

// removeStale removes files that are not read any more, and returns those that stay: the next snapshot replaces them too.
func (j *Journal) removeStale(files []logfolder.Info) (stay []logfolder.Info) {
	for _, info := range files {
		if err := j.files.Remove(info.Name); err != nil {
			j.failed.Add(1)
			j.bytes.Add(info.Size)
			stay = append(stay, info)
		}
	}
	return stay
}
