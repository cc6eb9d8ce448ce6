package main

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

func newPluginDeactivateCommand(at *address) *cobra.Command {
	return removeFromChain(at, &cobra.Command{
		Use:   "deactivate --stream NAME PLUGIN",
		Short: "Take a plugin out of a stream's chain",
		Args:  cobra.ExactArgs(1),
	})
}

func newPluginResetCommand(at *address) *cobra.Command {
	return removeFromChain(at, &cobra.Command{
		Use:   "reset --stream NAME",
		Short: "Give a stream the plugins of its definition again, such as the configuration file's",
		Args:  cobra.NoArgs,
	})
}

// removeFromChain makes cmd one that removes the activation of the plugin it names, or all when it names none, and prints
// the chain that is then in force.
func removeFromChain(at *address, cmd *cobra.Command) *cobra.Command {
	var stream, stage string
	streamFlag(cmd, &stream)
	if cmd.Name() == "deactivate" {
		cmd.Flags().StringVar(&stage, "stage", "", "only the version in this stage: active, shadow or canary (default: all)")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := requireStream(stream); err != nil {
			return err
		}
		c := call{method: http.MethodDelete, path: chainPath(stream)}
		for _, plugin := range args {
			c.path += "/" + url.PathEscape(plugin)
		}
		if stage != "" {
			c.path += "?stage=" + url.QueryEscape(stage)
		}
		var now chain
		if _, err := at.do(cmd.Context(), c, &now); err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), now)
		return nil
	}
	return cmd
}
