package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// newRootCommand is the tree of all commands.
func newRootCommand(c clock) *cobra.Command {
	root := &cobra.Command{
		Use:           "headgate",
		Short:         "Event ingestion gateway: HTTP in, filtered and keyed by WebAssembly plugins, ordered partitions out",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.AddCommand(
		newServeCommand(),
		newCheckCommand(),
		newSendCommand(c),
		newTailCommand(),
		newExplainCommand(),
		newSimulateCommand(c),
		newPluginCommand(c),
		newStreamCommand(),
		newDeadLetterCommand(),
		newSpoolCommand(),
		newVersionCommand(),
		newCompileCommand(),
	)
	root.SetHelpCommand(newHelpCommand())
	markWork(root)
	return root
}

// newGroup is a command that only holds others.
func newGroup(name, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// interruptible returns a context that the first SIGINT or SIGTERM ends; a second one kills.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// streamFlag adds --stream, which requireStream demands.
func streamFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "stream", "", "stream (required)")
}

func requireStream(name string) error {
	if name == "" {
		return usagef("which stream? give --stream NAME")
	}
	return nil
}

// outputFlag adds -o; the first choice is the default.
func outputFlag(cmd *cobra.Command, output *string, choices ...string) {
	cmd.Flags().StringVarP(output, "output", "o", choices[0], "output: "+strings.Join(choices, ", "))
}

func checkOutput(output string, choices ...string) error {
	if !slices.Contains(choices, output) {
		return usagef("-o %s: choose one of %s", output, strings.Join(choices, ", "))
	}
	return nil
}
