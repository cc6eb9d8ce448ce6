package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/event"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // the work failed
	exitUsage  = 2 // bad usage or configuration
)

// usage is an error of who called: exit code 2.
type usage struct{ err error }

func (u *usage) Error() string { return u.err.Error() }
func (u *usage) Unwrap() error { return u.err }

// usageError marks err as one of usage or configuration.
func usageError(err error) error { return &usage{err} }

// usagef makes an error of usage.
func usagef(format string, args ...any) error { return usageError(fmt.Errorf(format, args...)) }

// work is an error that a command returned; other errors are cobra's, about flags, arguments and unknown commands.
type work struct{ err error }

func (w *work) Error() string { return w.err.Error() }
func (w *work) Unwrap() error { return w.err }

// markWork wraps the errors of cmd and all commands below it.
func markWork(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		markWork(c)
	}
	do := cmd.RunE
	if do == nil {
		return
	}
	cmd.RunE = func(c *cobra.Command, args []string) error {
		if err := do(c, args); err != nil {
			return &work{err}
		}
		return nil
	}
}

// exitCode takes what the gateway finds wrong with settings and parameters for bad usage, too, whether we ask it or are it.
func exitCode(err error) int {
	if p, ok := errors.AsType[*event.Problem](err); ok && p.Code == event.BadConfiguration {
		return exitUsage
	}
	if refused, ok := errors.AsType[*refusedError](err); ok {
		switch refused.doc.Code {
		case event.BadConfiguration, event.BadParameter, event.BadStreamName:
			return exitUsage
		}
	}
	_, ofWork := errors.AsType[*work](err)
	_, ofUsage := errors.AsType[*usage](err)
	if ofWork && !ofUsage {
		return exitFailed
	}
	return exitUsage
}

// printError prints err with the command in front, one line for each error that is joined in it.
func printError(w io.Writer, cmd *cobra.Command, err error) {
	if _, ofWork := errors.AsType[*work](err); !ofWork {
		text := strings.Join(strings.Fields(err.Error()), " ")
		if strings.Contains(text, " arg(s), ") { // cobra's, which does not say which
			text += ": " + cmd.UseLine()
		}
		fmt.Fprintf(w, "%s: %s (see %[1]s --help)\n", cmd.CommandPath(), text)
		return
	}
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			fmt.Fprintf(w, "%s: %s\n", cmd.CommandPath(), line)
		}
	}
}
