package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
)

func newPluginBuildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build [DIR]",
		Short: "Compile a plugin's folder to a module with the language's own compiler",
		Long:  "Compile the plugin in DIR (default: here) to NAME.wasm. The commands are printed as they run. Only AssemblyScript\nneeds the network, once: its compiler comes with npm.",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			p, err := openProject(dir)
			if err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			if err := p.build(ctx, cmd.ErrOrStderr()); err != nil {
				return err
			}
			info, err := os.Stat(p.module())
			if err != nil {
				return fmt.Errorf("the compiler made no module: %w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s (%d bytes)\n", p.module(), info.Size())
			return nil
		},
	}
}

// build runs the commands of the project's language in its folder; they and what they print go to log.
func (p *project) build(ctx context.Context, log io.Writer) error {
	steps, err := p.toolchain()
	if err != nil {
		return err
	}
	for _, s := range steps {
		fmt.Fprintf(log, "+ %s\n", s)
		cmd := exec.CommandContext(ctx, s.args[0], s.args[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
		cmd.Env = append(os.Environ(), s.env...)
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", s.args[0], err)
		}
	}
	return nil
}

// buildStep is a command and what its environment has besides.
type buildStep struct{ env, args []string }

// String is the command as one would type it.
func (s buildStep) String() string {
	words := append([]string(nil), s.env...)
	for _, a := range s.args {
		if strings.ContainsAny(a, " '\"$&|;<>()") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}
