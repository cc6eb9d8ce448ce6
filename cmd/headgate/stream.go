package main

import (
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
)

func newStreamCommand() *cobra.Command {
	cmd := newGroup("stream", "Inspect and change stream definitions")
	at := adminFlag(cmd)
	cmd.AddCommand(
		newStreamListCommand(at),
		newStreamShowCommand(at),
		newStreamSetCommand(at),
		newStreamPurgeCommand(at),
		newStreamResumeCommand(at),
		newStreamDeleteCommand(at),
	)
	return cmd
}

func streamPath(name string) string { return "/v1/streams/" + url.PathEscape(name) }

// definition is what a list shows of a stream.
type definition struct {
	Name       string `json:"name"`
	Revision   uint64 `json:"revision"`
	Managed    string `json:"managed"`
	Partitions any    `json:"partitions"`
	Codec      string `json:"codec"`
	Backend    string `json:"backend"`
	Stored     *struct {
		Bytes int64 `json:"bytes"`
		Limit int64 `json:"limit"`
	} `json:"stored"`
}

// stored says how full the stream is, in MiB.
func (d *definition) stored() string {
	const mib = 1 << 20
	switch {
	case d.Stored == nil:
		return "-"
	case d.Stored.Limit == 0:
		return fmt.Sprintf("%.1fMiB", float64(d.Stored.Bytes)/mib)
	}
	return fmt.Sprintf("%.1f of %.1fMiB", float64(d.Stored.Bytes)/mib, float64(d.Stored.Limit)/mib)
}
