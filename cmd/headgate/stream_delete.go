package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

func newStreamDeleteCommand(at *address) *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a stream's definition",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := at.do(cmd.Context(), call{method: http.MethodDelete, path: streamPath(args[0])}, nil); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), args[0]+": deleted")
			return nil
		},
	}
}
