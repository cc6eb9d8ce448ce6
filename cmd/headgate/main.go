// Command headgate is the gateway and its command line.
//
// A command is a file, and what only it needs begins with its name: plugin_push is `headgate plugin push`, send_session is how send
// speaks over QUIC. What all commands need is root (the tree of them), remote (a listener of a gateway), flags, exit, retry,
// terminal and progress. Tests that begin with real run the binary.
package main

import (
	"context"
	"io"
	"os"
)

// Set by the linker (see the Makefile), never by the program.
var (
	version = "dev"
	commit  string
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}, systemClock()))
}

// streams are the standard streams of the process.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run executes one command line and returns the exit code: 0 done, 1 the work failed, 2 bad usage or configuration.
func run(ctx context.Context, args []string, s streams, c clock) int {
	root := newRootCommand(c)
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	printError(s.err, cmd, err)
	return exitCode(err)
}
