package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/internal/settings"
)

// span is a duration as flags and settings take it: 10ms, 30s, 7d.
type span time.Duration

// Set reads it.
func (s *span) Set(text string) error { return (*settings.Duration)(s).UnmarshalText([]byte(text)) }

// String writes it.
func (s *span) String() string { return time.Duration(*s).String() }

// Type is what the help calls it.
func (s *span) Type() string { return "duration" }

// noArguments refuses words behind a command that takes none.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments, only flags; got %q", cmd.Name(), strings.Join(args, " "))
	}
	return nil
}

// newHelpCommand is help of a command by its name.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("there is no command %q; headgate help lists all", strings.Join(args, " "))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}
