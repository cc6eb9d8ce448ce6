package main

import (
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/admin"
)

func newVersionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit, and what it was built with",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, "text", "json"); err != nil {
				return err
			}
			b := build()
			if output == "json" {
				return printJSON(cmd.OutOrStdout(), b)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "headgate %s\ncommit   %s\ngo       %s %s/%s\n",
				b.Version, orNone(b.Commit), b.Go, runtime.GOOS, runtime.GOARCH)
			for _, path := range slices.Sorted(maps.Keys(b.Modules)) {
				fmt.Fprintf(cmd.OutOrStdout(), "module   %s %s\n", path, b.Modules[path])
			}
			return nil
		},
	}
	outputFlag(cmd, &output, "text", "json")
	return cmd
}

// build describes this binary.
func build() admin.Build {
	b := admin.Build{Version: version, Commit: commit, Go: runtime.Version(), Modules: map[string]string{}}
	if bi, ok := debug.ReadBuildInfo(); ok {
		for _, m := range bi.Deps {
			b.Modules[m.Path] = m.Version
		}
	}
	return b
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
