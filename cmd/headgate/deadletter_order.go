package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"
)

// letterOrder is the flags of replay and purge.
type letterOrder struct {
	letterFilter
	action  string
	all     bool
	dryRun  bool
	letters []string
	rate    int
}

func newDeadLetterReplayCommand(at *address) *cobra.Command {
	o := letterOrder{action: "replay"}
	cmd := o.command(at)
	cmd.Use = "replay STREAM (--all | LETTER... | filters)"
	cmd.Short = "Take letters through their stream again"
	cmd.Long = "Take letters through their stream again, as they came. A letter that is taken is settled, and no later replay takes it;\n" +
		"one that fails again is settled, and a new letter; one that is refused stays. The last line says what became of them.\n" +
		"Ctrl-C ends it after the events that are on their way."
	cmd.Example = "  headgate deadletter replay web --all --dry-run\n  headgate deadletter replay web --plugin nginx --since 2h\n  headgate deadletter replay web ccfa6110d2ec7709.17"
	cmd.Flags().IntVar(&o.rate, "rate", 0, "events a second (0: 2000)")
	return cmd
}

func newDeadLetterPurgeCommand(at *address) *cobra.Command {
	o := letterOrder{action: "purge"}
	cmd := o.command(at)
	cmd.Use = "purge STREAM (--all | LETTER... | filters)"
	cmd.Short = "Let letters go without taking them again"
	cmd.Example = "  headgate deadletter purge web --until 30d --dry-run\n  headgate deadletter purge web --code plugin_failed"
	return cmd
}

func (o *letterOrder) command(at *address) *cobra.Command {
	cmd := &cobra.Command{Args: cobra.MinimumNArgs(1)}
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.all, "all", false, "all open letters")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only say what would become of them")
	cmd.Flags().Uint64Var(&o.to, "to", 0, "up to this number")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.letters = args[1:]
		body, err := o.body()
		if err != nil {
			return err
		}
		to, err := at.dial()
		if err != nil {
			return err
		}
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		resp, err := to.send(ctx, call{method: http.MethodPost, path: deadLetterPath(args[0]), mediaType: "application/json", body: body})
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		err = o.follow(resp.Body, cmd.OutOrStdout(), cmd.ErrOrStderr())
		if ctx.Err() != nil {
			return errors.New("interrupted; what was done by then is noted")
		}
		return err
	}
	return cmd
}

// body is the order; that one is given is left to the gateway.
func (o *letterOrder) body() ([]byte, error) {
	order := map[string]any{"action": o.action}
	for name, value := range o.texts() {
		order[name] = value
	}
	for name, n := range map[string]uint64{"from": o.from, "to": o.to} {
		if n > 0 {
			order[name] = n
		}
	}
	if len(o.letters) > 0 {
		order["letters"] = o.letters
	}
	switch {
	case o.all && len(order) > 1:
		return nil, usagef("give --all, or say which letters, not both")
	case !o.all && len(order) == 1:
		return nil, usagef("say which letters: their names, --code, --plugin, --reason, --since, --until, --from, --to; or --all")
	}
	if o.all {
		order["all"] = true
	}
	if o.limit > 0 {
		order["limit"] = o.limit
	}
	if o.rate != 0 {
		order["rate"] = o.rate
	}
	if o.dryRun {
		order["dry_run"] = true
	}
	return json.Marshal(order)
}

// letterReport is a line of the answer.
type letterReport struct {
	Done bool `json:"done"`
	Sums struct {
		Selected uint64  `json:"selected"`
		Replayed *uint64 `json:"replayed,omitempty"`
		Filtered *uint64 `json:"filtered,omitempty"`
		Failed   *uint64 `json:"failed,omitempty"`
		Purged   *uint64 `json:"purged,omitempty"`
		Left     uint64  `json:"left"`
	} `json:"sums"`
	Error  string `json:"error"`
	Detail string `json:"detail"`
}

// follow shows on a terminal how far it is, and prints the sums in the end.
func (o *letterOrder) follow(body io.Reader, out, stderr io.Writer) error {
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("the answer broke off: what was done by then is noted: %w", err)
		}
		var r letterReport
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("a line of the answer: %w", err)
		}
		if !r.Done {
			if watched(stderr) {
				fmt.Fprintf(stderr, "\r\x1b[K%d of %d", r.Sums.Selected-r.Sums.Left, r.Sums.Selected)
			}
			continue
		}
		if watched(stderr) {
			fmt.Fprint(stderr, "\r\x1b[K")
		}
		doc, err := json.Marshal(r.Sums)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n", doc)
		return o.verdict(&r)
	}
}

// verdict is why not all is well.
func (o *letterOrder) verdict(r *letterReport) error {
	switch {
	case r.Error != "":
		return fmt.Errorf("%s: %s", r.Error, r.Detail)
	case o.dryRun:
		return nil
	case r.Sums.Left > 0:
		return fmt.Errorf("%d letters stay as they are: the stream refused them", r.Sums.Left)
	case r.Sums.Failed != nil && *r.Sums.Failed > 0:
		return fmt.Errorf("%d events failed again, and are new letters", *r.Sums.Failed)
	}
	return nil
}
