package main

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

func newPluginDeactivateCommand(at *address) *cobra.Command {
	var stream string
	cmd := &cobra.Command{
		Use:   "deactivate --stream NAME PLUGIN",
		Short: "Take a plugin out of a stream's chain",
		Args:  cobra.ExactArgs(1),
	}
	streamFlag(cmd, &stream)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := requireStream(stream); err != nil {
			return err
		}
		to, err := at.dial()
		if err != nil {
			return err
		}
		var now chain
		c := call{method: http.MethodDelete, path: chainPath(stream) + "/" + url.PathEscape(args[0])}
		if _, err := to.do(cmd.Context(), c, &now); err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), now)
		return nil
	}
	return cmd
}
