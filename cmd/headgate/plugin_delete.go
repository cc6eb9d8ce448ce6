package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

func newPluginDeleteCommand(at *address) *cobra.Command {
	var digest string
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Remove a plugin that is active nowhere, or one of its versions",
		Args:  cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&digest, "digest", "", "only this version; its first 8 digits will do")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path := pluginPath(args[0])
		if digest != "" {
			path = versionPath(args[0], digest)
		}
		if _, err := at.do(cmd.Context(), call{method: http.MethodDelete, path: path}, nil); err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), args[0]+": deleted")
		return nil
	}
	return cmd
}
