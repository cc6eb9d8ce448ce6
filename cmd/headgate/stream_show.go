package main

import (
	"encoding/json"
	"net/http"

	"github.com/spf13/cobra"
)

func newStreamShowCommand(at *address) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show a stream's definition, as JSON",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var doc json.RawMessage
			if _, err := at.do(cmd.Context(), call{method: http.MethodGet, path: streamPath(args[0])}, &doc); err != nil {
				return err
			}
			return printJSON(cmd.OutOrStdout(), doc)
		},
	}
}
