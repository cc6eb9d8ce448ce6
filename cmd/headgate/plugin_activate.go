package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/plugins"
)

func newPluginActivateCommand(at *address) *cobra.Command {
	var stream, config string
	var a admin.Activation
	cmd := &cobra.Command{
		Use:   "activate --stream NAME PLUGIN",
		Short: "Let a stream's events go through a plugin, in place of its other version or after the other plugins",
		Example: `  headgate plugin activate --stream web accesslog --config '{"drop_status_from":500}'
  headgate plugin activate --stream web accesslog --stage canary --percent 10`,
		Args: cobra.ExactArgs(1),
	}
	streamFlag(cmd, &stream)
	cmd.Flags().StringVar(&a.Digest, "digest", "", "version; its first 8 digits will do (default: the newest)")
	cmd.Flags().StringVar(&config, "config", "", "the plugin's configuration, JSON or @FILE")
	cmd.Flags().StringVar(&a.OnError, "on-error", "", "what becomes of events it fails on: reject, deadletter, pass or default_key=KEY (default: deadletter if it sets keys and drops nothing, else reject)")
	cmd.Flags().StringVar(&a.Stage, "stage", "", "active; shadow: it processes copies, is compared and changes nothing; canary: it processes the requests of some producers (default: active)")
	cmd.Flags().IntVar(&a.Percent, "percent", 0, "of the producers, for a canary: 1 to 100")
	cmd.Flags().StringVar(&a.OnSuspend, "on-suspend", "", "what becomes of its events when it is suspended: policy (as --on-error says) or previous (the version before takes them) (default: policy)")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := requireStream(stream); err != nil {
			return err
		}
		a.Plugin = args[0]
		if a.Config, err = readConfig(config); err != nil {
			return err
		}
		body, err := json.Marshal(a)
		if err != nil {
			return err
		}
		var now chain
		c := call{method: http.MethodPost, path: chainPath(stream), mediaType: "application/json", body: body}
		if _, err := at.do(cmd.Context(), c, &now); err != nil {
			return err
		}
		if now.Created {
			fmt.Fprintf(cmd.ErrOrStderr(), "there was no stream %s: it is made, with the defaults; `headgate stream delete %[1]s` takes it away\n", now.Stream)
		}
		fmt.Fprintln(cmd.OutOrStdout(), now)
		return nil
	}
	return cmd
}

// readConfig returns a plugin's configuration given as JSON or as @FILE; nil for none.
func readConfig(given string) (json.RawMessage, error) {
	text := []byte(given)
	if name, ok := strings.CutPrefix(given, "@"); ok {
		var err error
		if text, err = os.ReadFile(name); err != nil {
			return nil, usageError(err)
		}
	}
	if len(text) == 0 {
		return nil, nil
	}
	if !plugins.ConfigFits(text) {
		return nil, usagef(`--config is no JSON object; it looks like {"name": "value"}, or @FILE`)
	}
	return text, nil
}
