package main

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/admin"
)

func newPluginCommand(c clock) *cobra.Command {
	cmd := newGroup("plugin", "Write, upload, inspect and activate WebAssembly plugins")
	at := adminFlag(cmd)
	cmd.AddCommand(
		newPluginInitCommand(),
		newPluginBuildCommand(),
		newPluginTestCommand(at),
		newPluginBenchCommand(),
		newPluginPushCommand(at, c),
		newPluginListCommand(at),
		newPluginShowCommand(at),
		newPluginLogsCommand(at),
		newPluginActivateCommand(at),
		newPluginPromoteCommand(at),
		newPluginRollbackCommand(at),
		newPluginResumeCommand(at),
		newPluginDeactivateCommand(at),
		newPluginResetCommand(at),
		newPluginDeleteCommand(at),
	)
	return cmd
}

func pluginPath(name string) string { return "/v1/plugins/" + url.PathEscape(name) }

func versionPath(name, digest string) string {
	return pluginPath(name) + "/versions/" + url.PathEscape(digest)
}

func chainPath(stream string) string { return streamPath(stream) + "/plugins" }

// chain is the answer to a change of what a stream's events go through.
type chain struct {
	Stream  string             `json:"stream"`
	Plugins []admin.Activation `json:"plugins"`
	Created bool               `json:"created"` // the stream was made
}

// String names the plugins in order with the first digits of their digests.
func (c chain) String() string {
	if len(c.Plugins) == 0 {
		return c.Stream + ": no plugins"
	}
	var steps []string
	for _, p := range c.Plugins {
		steps = append(steps, p.Plugin+"@"+shortDigest(p.Digest)+stageOf(p))
	}
	return c.Stream + ": " + strings.Join(steps, " | ")
}

// stageOf is what is to be said of a version besides its name; nothing of one in force.
func stageOf(p admin.Activation) (text string) {
	switch p.Stage {
	case "shadow":
		text = " (shadow)"
	case "canary":
		text = fmt.Sprintf(" (canary %d %%)", p.Percent)
	}
	if p.Suspended != nil {
		text += " (suspended)"
	}
	return text
}

// shortDigest is enough of a digest to name a version.
func shortDigest(digest string) string {
	digits := strings.TrimPrefix(digest, "sha256:")
	return digits[:min(12, len(digits))]
}
