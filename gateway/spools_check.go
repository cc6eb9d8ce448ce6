package gateway

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/gateway/datafolder"
	"github.com/headgate-io/headgate/internal/logfolder"
)

// EachSpool opens the spools of a data folder, one after the other, in the order of their streams' names.
func EachSpool(data string, visit func(stream string, files spool.Files) error) error {
	top := filepath.Join(data, "spool")
	entries, err := os.ReadDir(top)
	if err != nil {
		return fmt.Errorf("%s is no data folder with a spool: %w", data, err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		files, err := logfolder.Make(filepath.Join(top, e.Name()))
		if err != nil {
			return err
		}
		if err := visit(e.Name(), files); err != nil {
			return err
		}
	}
	return nil
}

// RepairSpools sets aside what is damaged in the spools of a data folder, which no gateway may use meanwhile, and tells
// visit what it was.
func RepairSpools(data string, visit func(stream string, d spool.Damage)) error {
	if _, err := os.Stat(filepath.Join(data, "spool")); err != nil {
		return fmt.Errorf("%s is no data folder with a spool: %w", data, err)
	}
	folder, err := datafolder.Open(data)
	if err != nil {
		return err
	}
	defer folder.Close()
	return EachSpool(data, func(stream string, files spool.Files) error {
		all, err := spool.Repair(files)
		for _, d := range all {
			visit(stream, d)
		}
		return err
	})
}
