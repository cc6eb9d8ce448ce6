package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

func newStreamResumeCommand(at *address) *cobra.Command {
	return &cobra.Command{
		Use:   "resume NAME",
		Short: "Let partitions go on that set no more events aside, since the backend refuses too many",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var answer struct {
				Partitions int `json:"resumed_partitions"`
			}
			if _, err := at.do(cmd.Context(), call{method: http.MethodPost, path: streamPath(args[0]) + "/resume"}, &answer); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d partitions go on\n", args[0], answer.Partitions)
			return nil
		},
	}
}
