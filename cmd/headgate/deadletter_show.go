package main

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

func newDeadLetterShowCommand(at *address) *cobra.Command {
	return &cobra.Command{
		Use:   "show STREAM LETTER",
		Short: "Show one letter with its event, settled or not",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var letter json.RawMessage
			c := call{method: http.MethodGet, path: deadLetterPath(args[0]) + "/" + url.PathEscape(args[1])}
			if _, err := at.do(cmd.Context(), c, &letter); err != nil {
				return err
			}
			return printJSON(cmd.OutOrStdout(), letter)
		},
	}
}
