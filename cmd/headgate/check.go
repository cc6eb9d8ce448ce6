package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/gateway/config"
)

// newCheckCommand validates a configuration without running it.
func newCheckCommand() *cobra.Command {
	var src config.Sources
	cmd := &cobra.Command{
		Use:   "check --config FILE",
		Short: "Validate a configuration: ok, or each error with its path",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			src.Environ = os.Environ()
			_, warnings, err := config.Load(src)
			for _, w := range warnings {
				fmt.Fprintln(cmd.ErrOrStderr(), w)
			}
			if err != nil {
				return usageError(err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), "ok")
			return nil
		},
	}
	configFlag(cmd, &src.File)
	cmd.Flags().StringArrayVar(&src.Set, "set", nil, "a setting, as path=value in YAML (may be repeated)")
	return cmd
}
