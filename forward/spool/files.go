package spool

import "github.com/headgate-io/headgate/internal/logfolder"

// Files is the folder of a spool, and File a file in it.
type (
	Files = logfolder.Files
	File  = logfolder.File
)
