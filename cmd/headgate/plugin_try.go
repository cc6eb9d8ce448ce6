package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/plugins"
)

// newPluginTestCommand is `plugin test`; the file can't be called plugin_test.go.
func newPluginTestCommand() *cobra.Command {
	var events, expect, config, mediaType, output string
	var accept bool
	cmd := &cobra.Command{
		Use:   "test [DIR | FILE]",
		Short: "Run a module over sample events, here and without a gateway",
		Long: "Check the module of a plugin's folder (default: here), or a FILE, as an upload would, and run it over sample events: a line for\neach event, and what a call costs. The samples, and what is to become of them, are those of the folder unless flags say otherwise.\n" +
			"Exit code 1 if the module is refused, fails on an event, or makes of one what is not expected.",
		Example: "  headgate plugin test\n" + `  headgate plugin test accesslog.wasm --events sample.ndjson --config '{"drop_status_from":500}'`,
		Args:    cobra.MaximumNArgs(1),
	}
	cmd.Flags().StringVar(&events, "events", "", "file with sample events, or - (required for a FILE)")
	cmd.Flags().StringVar(&expect, "expect", "", "file that says what is to become of the events, a JSON line for each")
	cmd.Flags().BoolVar(&accept, "accept", false, "write what becomes of the events to the file of expectations")
	cmd.Flags().StringVar(&config, "config", "", "the plugin's configuration, JSON or @FILE")
	cmd.Flags().StringVar(&mediaType, "type", ndjson, "media type of the events")
	outputFlag(cmd, &output, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		sub, err := openSubject(args)
		if err := errors.Join(err, checkOutput(output, "text", "json")); err != nil {
			return err
		}
		if events == "" && sub.dir == "" {
			return ownTests(cmd, sub)
		}
		ofFolder := events == ""
		if ofFolder {
			events, expect = sub.path(sub.Events), cmp.Or(expect, sub.path(sub.Expect))
		}
		if events == "" {
			return usagef("on which events? give --events FILE")
		}
		cfg, err := sub.config(config)
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
		t := &trial{out: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(), json: output == "json", syntax: syntaxOf(mediaType), untested: ofFolder}
		if err := t.expectations(expect, accept); err != nil {
			return err
		}
		if err := t.load(ctx, sub.file, sub.wasm, cfg); err != nil {
			return err
		}
		defer t.close()
		err = t.run(ctx, cut(file, mediaType, trialBatch))
		if err == nil && accept {
			err = sub.embedAgain()
		}
		return err
	}
	return cmd
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
