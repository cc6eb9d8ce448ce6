package main

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// tailOptions are the flags of tail.
type tailOptions struct {
	stream, from, output string
	count, partition     int
	wait                 time.Duration
}

func newTailCommand() *cobra.Command {
	var o tailOptions
	cmd := &cobra.Command{
		Use:   "tail --stream NAME",
		Short: "Read back what the backend holds, and follow",
		Long: "Read back what the backend holds, and follow what comes. Output: data prints the events, one a line; json adds\n" +
			"partition, number, slot, key, id and time; frames copies the stored frames as they are (-n ends after the frames\n" +
			"in which that event is).",
		Example: "  headgate tail --stream web --from start --wait 1s -o json\n  headgate tail --stream web -o frames --from start --wait 1s | zstd -dc",
		Args:    noArguments,
	}
	at := adminFlag(cmd)
	streamFlag(cmd, &o.stream)
	cmd.Flags().StringVar(&o.from, "from", "now", "start, now, or the number of an event in its lane")
	cmd.Flags().IntVarP(&o.count, "events", "n", 0, "end after so many events (0: never)")
	cmd.Flags().IntVar(&o.partition, "partition", -1, "only this partition (-1: all)")
	cmd.Flags().Var((*span)(&o.wait), "wait", "end when all that is stored was read and nothing new came for so long (0: never)")
	outputFlag(cmd, &o.output, "data", "json", "frames")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		from, err := at.dial()
		if err != nil {
			return err
		}
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		t := &tailer{from: from, options: o, out: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr()}
		return t.run(ctx)
	}
	return cmd
}

func (o *tailOptions) check() error {
	if err := requireStream(o.stream); err != nil {
		return err
	}
	if _, err := strconv.ParseUint(o.from, 10, 64); err != nil && o.from != "start" && o.from != "now" {
		return usagef("--from is start, now or a number, not %q", o.from)
	}
	if o.count < 0 || o.wait < 0 || o.partition < -1 {
		return usagef("-n and --wait are not negative; --partition is -1 for all, or from 0")
	}
	return checkOutput(o.output, "data", "json", "frames")
}

// call is the request that reads and follows.
func (o *tailOptions) call() call {
	q := url.Values{"from": {o.from}, "follow": {"true"}}
	if o.count > 0 {
		q.Set("limit", strconv.Itoa(o.count))
	}
	if o.wait > 0 {
		q.Set("idle", o.wait.String())
	}
	if o.partition >= 0 {
		q.Set("partition", strconv.Itoa(o.partition))
	}
	accept := "application/x-ndjson"
	if o.output == "frames" {
		accept = "application/octet-stream"
	}
	return call{method: http.MethodGet, path: "/v1/streams/" + url.PathEscape(o.stream) + "/events?" + q.Encode(),
		header: http.Header{"Accept": {accept}}}
}
