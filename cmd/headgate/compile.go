package main

import (
	"os"
	"runtime"

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
// where the program does not know how to start itself.
func compiler() []string {
	if runtime.GOOS == "linux" {
		return []string{"/proc/self/exe", "compile-module"}
	}
	if self, err := os.Executable(); err == nil {
		return []string{self, "compile-module"}
	}
	return nil
}
