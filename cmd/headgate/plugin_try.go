package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/plugins"
)

// tryFlags are those of `plugin test`.
type tryFlags struct {
	events, expect, config, mediaType, output string
	accept                                    bool
	uploaded, digest                          string
}

// newPluginTestCommand is `plugin test`; the file can't be called plugin_test.go.
func newPluginTestCommand(at *address) *cobra.Command {
	var f tryFlags
	cmd := &cobra.Command{
		Use:   "test [DIR | FILE]",
		Short: "Run a module over sample events, here and without a gateway",
		Long: "Check the module of a plugin's folder (default: here), or a FILE, as an upload would, and run it over sample events: a line for\neach event, and what a call costs. The samples, and what is to become of them, are those of the folder unless flags say otherwise;\n" +
			"of a FILE without --events, the tests that it brings.\nExit code 1 if the module is refused, fails on an event, or makes of one what is not expected.",
		Example: "  headgate plugin test\n" + `  headgate plugin test accesslog.wasm --events sample.ndjson --config '{"drop_status_from":500}'`,
		Args:    cobra.MaximumNArgs(1),
	}
	cmd.Flags().StringVar(&f.events, "events", "", "file with sample events, or - (for a FILE without tests of its own)")
	cmd.Flags().StringVar(&f.expect, "expect", "", "file that says what is to become of the events, a JSON line for each")
	cmd.Flags().BoolVar(&f.accept, "accept", false, "write what becomes of the events to the file of expectations")
	cmd.Flags().StringVar(&f.config, "config", "", "the plugin's configuration, JSON or @FILE")
	cmd.Flags().StringVar(&f.mediaType, "type", ndjson, "media type of the events")
	cmd.Flags().StringVar(&f.uploaded, "uploaded", "", "instead of a file: the plugin of this name on the gateway, which runs it over the events")
	cmd.Flags().StringVar(&f.digest, "digest", "", "with --uploaded: the version; its first 8 digits will do (default: the newest)")
	outputFlag(cmd, &f.output, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkOutput(f.output, "text", "json"); err != nil {
			return err
		}
		t := &trial{out: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(), json: f.output == "json", syntax: syntaxOf(f.mediaType)}
		if f.uploaded != "" {
			return (&uploaded{trial: t, at: at, f: &f}).run(cmd, args)
		}
		sub, err := openSubject(args)
		if err != nil {
			return err
		}
		if f.events == "" && sub.dir == "" {
			return ownTests(cmd, sub)
		}
		return t.try(cmd, sub, &f)
	}
	return cmd
}

// try runs a module over the events of a file, or those of its folder.
func (t *trial) try(cmd *cobra.Command, sub *subject, f *tryFlags) error {
	events, expect := f.events, f.expect
	if events == "" {
		t.untested = true // the folder's own, which are looked at here one by one
		events, expect = sub.path(sub.Events), cmp.Or(expect, sub.path(sub.Expect))
	}
	if events == "" {
		return usagef("on which events? give --events FILE")
	}
	cfg, err := sub.config(f.config)
	if err != nil {
		return err
	}
	file, _, err := openInput(events, cmd.InOrStdin())
	if err != nil {
		return err
	}
	defer file.Close()
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	if err := t.expectations(expect, f.accept); err != nil {
		return err
	}
	if err := t.load(ctx, sub.file, sub.wasm, cfg); err != nil {
		return err
	}
	defer t.close()
	err = t.run(ctx, cut(file, f.mediaType, trialBatch))
	if err == nil && f.accept {
		err = sub.embedAgain()
	}
	return err
}

// expectations opens the file that says what is to become of events; none without a name.
func (t *trial) expectations(file string, accept bool) (err error) {
	switch {
	case file != "":
		t.expect, err = openExpectations(file, accept)
	case accept:
		err = usagef("accept into which file? give --expect FILE")
	}
	return err
}

// ownTests checks a module as an upload would, with the tests that it brings.
func ownTests(cmd *cobra.Command, sub *subject) error {
	tests, err := plugins.TestsOf(sub.wasm)
	if err != nil {
		return fmt.Errorf("the module is refused: %w", err)
	}
	if tests == nil || len(tests.Tests) == 0 {
		return usagef("on which events? %s brings no tests; give --events FILE", sub.file)
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	t := &trial{out: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr()}
	if err := t.load(ctx, sub.file, sub.wasm, tests.Config); err != nil {
		return err
	}
	defer t.close()
	_, err = fmt.Fprintf(t.out, "%s: its %d tests came out as they say\n", sub.file, len(tests.Tests))
	return err
}
