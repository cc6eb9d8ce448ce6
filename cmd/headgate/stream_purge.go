package main

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

func newStreamPurgeCommand(at *address) *cobra.Command {
	var age string
	var keep uint64
	cmd := &cobra.Command{
		Use:     "purge NAME --older-than AGE | --keep RUNS",
		Short:   "Remove stored events of a stream, by age or count; the last run of each lane stays",
		Example: "  headgate stream purge web --older-than 7d\n  headgate stream purge web --keep 1000",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&age, "older-than", "", "what is older goes, as in 7d or 12h")
	cmd.Flags().Uint64Var(&keep, "keep", 0, "all but the newest so many runs go")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		order := map[string]any{"older_than": age}
		if cmd.Flags().Changed("keep") {
			if age != "" {
				return usagef("give --older-than or --keep, not both")
			}
			order = map[string]any{"keep": keep}
		} else if age == "" {
			return usagef("say what goes: --older-than AGE or --keep RUNS")
		} else if err := new(span).Set(age); err != nil {
			return usageError(fmt.Errorf("--older-than: %w", err))
		}
		body, err := json.Marshal(order)
		if err != nil {
			return err
		}
		var answer struct {
			Runs uint64 `json:"purged_runs"`
		}
		c := call{method: http.MethodPost, path: streamPath(args[0]) + "/purge", mediaType: "application/json", body: body}
		if _, err := at.do(cmd.Context(), c, &answer); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %d runs removed\n", args[0], answer.Runs)
		return nil
	}
	return cmd
}
