// Command bench measures the gateway beside the least that could do its job. README.md says what, how and why.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// roles are the programs in this one: the harness starts the others as processes of their own, so that the CPU time of
// each can be told apart.
var roles = map[string]func(ctx context.Context, args []string) error{
	"run":   runHarness,
	"load":  runLoad,
	"sink":  runSink,
	"floor": runFloor,
	"bare":  runBare,
	"lines": printLines,

	"quic":      runQUIC,
	"quicload":  runQUICLoad,
	"quicfloor": runQUICFloor,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	role, args := "run", os.Args[1:]
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		role, args = args[0], args[1:]
	}
	run, ok := roles[role]
	if !ok {
		run = func(context.Context, []string) error {
			return fmt.Errorf("no role %q; there are run (the default), load, sink, floor, bare, lines, quic, quicload, quicfloor", role)
		}
	}
	err := run(ctx, args)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench "+role+":", err)
		os.Exit(1)
	}
}
