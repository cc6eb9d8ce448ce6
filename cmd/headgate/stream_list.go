package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newStreamListCommand(at *address) *cobra.Command {
	var output string
	cmd := &cobra.Command{Use: "list", Short: "List the streams", Args: noArguments}
	outputFlag(cmd, &output, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkOutput(output, "text", "json"); err != nil {
			return err
		}
		to, err := at.dial()
		if err != nil {
			return err
		}
		var doc json.RawMessage
		if _, err := to.do(cmd.Context(), call{method: http.MethodGet, path: "/v1/streams"}, &doc); err != nil {
			return err
		}
		if output == "json" {
			return printJSON(cmd.OutOrStdout(), doc)
		}
		var all struct{ Streams []definition }
		if err := json.Unmarshal(doc, &all); err != nil {
			return to.foreign(err)
		}
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)
		fmt.Fprintln(w, "NAME\tREVISION\tMANAGED BY\tPARTITIONS\tCODEC\tBACKEND\tSTORED")
		for _, d := range all.Streams {
			partitions, _ := json.Marshal(d.Partitions) // came from JSON
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\n", d.Name, d.Revision, d.Managed, partitions, d.Codec, d.Backend, d.stored())
		}
		return w.Flush()
	}
	return cmd
}
