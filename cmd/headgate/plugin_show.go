package main

import (
	"encoding/json"
	"net/http"

	"github.com/spf13/cobra"
)

func newPluginShowCommand(at *address) *cobra.Command {
	var digest string
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a plugin's versions with their checks, as JSON",
		Args:  cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&digest, "digest", "", "only this version; its first 8 digits will do")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path := pluginPath(args[0])
		if digest != "" {
			path = versionPath(args[0], digest)
		}
		var doc json.RawMessage
		if _, err := at.do(cmd.Context(), call{method: http.MethodGet, path: path}, &doc); err != nil {
			return err
		}
		return printJSON(cmd.OutOrStdout(), doc)
	}
	return cmd
}
