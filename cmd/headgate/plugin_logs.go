package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/admin"
)

func newPluginLogsCommand(at *address) *cobra.Command {
	var output, digest string
	var follow bool
	var last int
	cmd := &cobra.Command{
		Use:     "logs NAME",
		Short:   "Show what a plugin logs, and what happens to it",
		Long:    "Print the last lines that a plugin logged, and what happened to it: uploads and why they were refused, failures. A gateway keeps 128 KiB of them for each version, in memory.",
		Example: "  headgate plugin logs accesslog -f",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "wait for more")
	cmd.Flags().IntVarP(&last, "lines", "n", 0, "only the last N of those that are there (default: all)")
	cmd.Flags().StringVar(&digest, "digest", "", "only of this version; its first 8 digits will do")
	outputFlag(cmd, &output, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkOutput(output, "text", "json"); err != nil {
			return err
		}
		to, err := at.dial()
		if err != nil {
			return err
		}
		query := url.Values{"follow": {strconv.FormatBool(follow)}, "last": {strconv.Itoa(last)}, "digest": {digest}}
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		resp, err := to.send(ctx, call{method: http.MethodGet, path: pluginPath(args[0]) + "/logs?" + query.Encode()})
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if output == "json" {
				fmt.Fprintln(cmd.OutOrStdout(), lines.Text())
				continue
			}
			var l admin.LogLine
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
				return to.foreign(err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s %-5s %s %-7s %s\n", l.Time.Local().Format(time.DateTime+".000"), l.Level, shortDigest(l.Version), l.From, tame(l.Message))
		}
		if ctx.Err() != nil {
			return nil // interrupted: what was asked for
		}
		return lines.Err()
	}
	return cmd
}

// tame is text of somebody else's, without what would make a terminal do things.
func tame(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t': // in traces of Go
			return ' '
		case unicode.IsControl(r):
			return '\uFFFD'
		}
		return r
	}, text)
}
