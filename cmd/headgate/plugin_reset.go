package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

func newPluginResetCommand(at *address) *cobra.Command {
	var stream string
	cmd := &cobra.Command{
		Use:   "reset --stream NAME",
		Short: "Give a stream the plugins of its definition again, such as the configuration file's",
		Args:  cobra.NoArgs,
	}
	streamFlag(cmd, &stream)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := requireStream(stream); err != nil {
			return err
		}
		to, err := at.dial()
		if err != nil {
			return err
		}
		var now chain
		c := call{method: http.MethodDelete, path: chainPath(stream)}
		if _, err := to.do(cmd.Context(), c, &now); err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), now)
		return nil
	}
	return cmd
}
