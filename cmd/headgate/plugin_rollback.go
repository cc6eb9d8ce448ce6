package main

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

func newPluginRollbackCommand(at *address) *cobra.Command {
	return steerPlugin(at, &cobra.Command{
		Use:   "rollback --stream NAME PLUGIN",
		Short: "End a plugin's canary or, when it has none, put the version before into force",
	})
}

func newPluginPromoteCommand(at *address) *cobra.Command {
	return steerPlugin(at, &cobra.Command{
		Use:   "promote --stream NAME PLUGIN",
		Short: "Put a plugin's shadow or canary into force",
	})
}

func newPluginResumeCommand(at *address) *cobra.Command {
	return steerPlugin(at, &cobra.Command{
		Use:   "resume --stream NAME PLUGIN",
		Short: "Call a plugin again that was suspended",
	})
}

// steerPlugin makes cmd one that asks for what it is called, and prints the chain that is then in force.
func steerPlugin(at *address, cmd *cobra.Command) *cobra.Command {
	var stream string
	streamFlag(cmd, &stream)
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := requireStream(stream); err != nil {
			return err
		}
		body, err := json.Marshal(map[string]string{"plugin": args[0]})
		if err != nil {
			return err
		}
		var now chain
		c := call{method: http.MethodPost, path: chainPath(stream) + "/" + cmd.Name(), mediaType: "application/json", body: body}
		if _, err := at.do(cmd.Context(), c, &now); err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), now)
		return nil
	}
	return cmd
}
