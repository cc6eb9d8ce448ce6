package main

import (
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
}
