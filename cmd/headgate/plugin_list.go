package main

import (
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/admin"
)

func newPluginListCommand(at *address) *cobra.Command {
	var output string
	cmd := &cobra.Command{Use: "list", Short: "List the plugins with their newest version", Args: noArguments}
	outputFlag(cmd, &output, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkOutput(output, "text", "json"); err != nil {
			return err
		}
		var all struct {
			Plugins []admin.Plugin `json:"plugins"`
		}
		if _, err := at.do(cmd.Context(), call{method: http.MethodGet, path: "/v1/plugins"}, &all); err != nil {
			return err
		}
		if output == "json" {
			return printJSON(cmd.OutOrStdout(), all)
		}
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)
		fmt.Fprintln(w, "NAME\tNEWEST\tSIZE\tUPLOADED\tVERSIONS\tUSED IN")
		for _, p := range all.Plugins {
			if len(p.Versions) == 0 {
				continue
			}
			v := p.Versions[0]
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%s\n", p.Name, shortDigest(v.Digest), v.Size,
				v.Created.Local().Format(time.DateTime), len(p.Versions), orNone(usedIn(p)))
		}
		return w.Flush()
	}
	return cmd
}

// usedIn names the streams that have a plugin, with the stage of what is not in force.
func usedIn(p admin.Plugin) string {
	var all []string
	for _, u := range p.Uses {
		all = append(all, u.Stream+stageOf(admin.Activation{Stage: u.Stage, Percent: u.Percent, Suspended: u.Suspended}))
	}
	return strings.Join(all, ", ")
}
