package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newDeadLetterListCommand(at *address) *cobra.Command {
	var f letterFilter
	var settled bool
	var output string
	cmd := &cobra.Command{
		Use:     "list STREAM",
		Short:   "List the open letters of a stream, oldest first",
		Example: "  headgate deadletter list web --since 1h --plugin nginx\n  headgate deadletter list web -o json",
		Args:    cobra.ExactArgs(1),
	}
	f.flags(cmd)
	cmd.Flags().BoolVar(&settled, "settled", false, "those too that were replayed or purged, as long as they are stored")
	outputFlag(cmd, &output, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkOutput(output, "text", "json"); err != nil {
			return err
		}
		to, err := at.dial()
		if err != nil {
			return err
		}
		q := f.query()
		if settled {
			q.Set("settled", "true")
		}
		resp, err := to.send(cmd.Context(), call{method: http.MethodGet, path: deadLetterPath(args[0]) + "?" + q.Encode()})
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if output == "json" {
			return copyLetters(resp.Body, func(line []byte, _ *shownLetter) { fmt.Fprintf(cmd.OutOrStdout(), "%s\n", line) })
		}
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "LETTER\tSTORED\tCODE\tTRIES\tPLUGIN\tREASON")
		err = copyLetters(resp.Body, func(_ []byte, l *shownLetter) { l.row(w) })
		return errors.Join(err, w.Flush())
	}
	return cmd
}

// shownLetter is what a list shows of a letter.
type shownLetter struct {
	Letter, Stored string
	Settled        bool
	Attributes     map[string]string
	Error, Detail  string
}

// mostReason is how much of a reason a line shows.
const mostReason = 80

func (l *shownLetter) row(w io.Writer) {
	a, tries, reason := l.Attributes, "0", strings.Join(strings.Fields(l.Attributes["reason"]), " ")
	if a["tries"] != "" {
		tries = a["tries"]
	}
	if runes := []rune(reason); len(runes) > mostReason {
		reason = string(runes[:mostReason]) + "..."
	}
	if l.Settled {
		reason = "(settled) " + reason
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", l.Letter, l.Stored, a["code"], tries, a["plugin"], reason)
}

// copyLetters shows each line of an answer. One that is about the answer is its error.
func copyLetters(body io.Reader, show func(line []byte, l *shownLetter)) error {
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the answer broke off: %w", err)
		}
		var l shownLetter
		if err := json.Unmarshal(line, &l); err != nil {
			return fmt.Errorf("a line of the answer: %w", err)
		}
		if l.Letter == "" {
			return fmt.Errorf("%s: %s", l.Error, l.Detail)
		}
		show(line[:len(line)-1], &l)
	}
}
