package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/plugins"
)

// newCompileCommand is how the gateway starts itself to compile a module under limits; nobody else needs it.
func newCompileCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "compile-module FOLDER SECONDS BYTES",
		Hidden: true,
		Args:   cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return plugins.CompileModule(args, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// compiler is the command that compiles modules: this very program, also when its file was replaced meanwhile. It is empty
// where that can't be done: without /proc.
func compiler() []string {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err != nil {
		return nil
	}
	return []string{self, "compile-module"}
}
