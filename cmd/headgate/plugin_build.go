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
		Long: "Compile the plugin in DIR (default: here) to NAME.wasm, with the tests of the folder in it: the gateway runs them before it takes the\n" +
			"module. The commands are printed as they run. Only AssemblyScript needs the network, once: its compiler comes with npm.",
		Args: cobra.MaximumNArgs(1),
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
			tests, why, err := p.embed()
			if err != nil {
				return err
			}
			if why != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "the module brings no tests: %v\n", why)
			}
			info, err := os.Stat(p.module())
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s (%d bytes, %d tests)\n", p.module(), info.Size(), tests)
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
