package main

import (
	"os"

	"github.com/spf13/cobra"
)

// newPluginTestCommand is `plugin test`; the file can't be called plugin_test.go.
func newPluginTestCommand() *cobra.Command {
	var events, config, mediaType, output string
	cmd := &cobra.Command{
		Use:     "test FILE --events EVENTS",
		Short:   "Run a module over sample events, here and without a gateway",
		Long:    "Check a module as an upload would, and run it over sample events: a line for each event, and what a call costs.\nExit code 1 if the module is refused or fails on an event.",
		Example: `  headgate plugin test accesslog.wasm --events sample.ndjson --config '{"drop_status_from":500}'`,
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&events, "events", "", "file with sample events, or - (required)")
	cmd.Flags().StringVar(&config, "config", "", "the plugin's configuration, JSON or @FILE")
	cmd.Flags().StringVar(&mediaType, "type", ndjson, "media type of the events")
	outputFlag(cmd, &output, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkOutput(output, "text", "json"); err != nil {
			return err
		}
		if events == "" {
			return usagef("on which events? give --events FILE")
		}
		cfg, err := readConfig(config)
		if err != nil {
			return err
		}
		wasm, err := os.ReadFile(args[0])
		if err != nil {
			return usageError(err)
		}
		file, _, err := openInput(events, cmd.InOrStdin())
		if err != nil {
			return err
		}
		defer file.Close()
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		t := &trial{out: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(), json: output == "json", syntax: syntaxOf(mediaType)}
		if err := t.load(ctx, args[0], wasm, cfg); err != nil {
			return err
		}
		defer t.close()
		return t.run(ctx, cut(file, mediaType, trialBatch))
	}
	return cmd
}
