package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// explainOptions are the flags of explain.
type explainOptions struct{ stream, mediaType, key, source, ordering, output string }

func newExplainCommand() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain --stream NAME FILE|- | explain --stream NAME --key KEY",
		Short: "Say what would become of the events of a file, or where a key goes, and why",
		Long: "Send the events of a file as a dry run: they are checked, filtered and given keys as if they were sent, and not stored.\n" +
			"One line for each event says what would become of it: its verdict and what decided, its key and where that is from, its partition.\n" +
			"Without a file, --key asks the operator's API where the events of that key go now, and why.",
		Example: "  headgate explain --stream web access.ndjson\n  head -1 access.ndjson | headgate explain --stream web -o json -\n" +
			"  headgate explain --stream web --key 203.0.113.1",
		Args: cobra.MaximumNArgs(1),
	}
	at := ingestFlag(cmd)
	operator := adminFlagBeside(at)
	streamFlag(cmd, &o.stream)
	cmd.Flags().StringVar(&o.mediaType, "type", ndjson, "media type of the file")
	cmd.Flags().StringVar(&o.key, "key", "", "key of events that get no other (Headgate-Key); without a file: the key to look for")
	cmd.Flags().StringVar(&o.source, "source", "", "without a file: the producer, which matters for a key that is split (Headgate-Source)")
	cmd.Flags().StringVar(&o.ordering, "ordering", "", "order that is asked for, strict or source (Headgate-Ordering)")
	outputFlag(cmd, &o.output, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := requireStream(o.stream); err != nil {
			return err
		}
		if err := checkOutput(o.output, "text", "json"); err != nil {
			return err
		}
		switch {
		case len(args) == 0:
			return explainKey(cmd, operator, &o)
		case o.source != "":
			return usagef("--source goes with --key and without a file: the events of a file are those of this machine")
		}
		to, err := at.dial()
		if err != nil {
			return err
		}
		file, _, err := openInput(args[0], cmd.InOrStdin())
		if err != nil {
			return err
		}
		defer file.Close()
		e := &explainer{to: to, options: o, file: shownName(args[0]), out: bufio.NewWriter(cmd.OutOrStdout())}
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		return e.explainAll(func(b *batch) (answer trialAnswer, err error) {
			c := call{method: http.MethodPost, path: "/v1/streams/" + url.PathEscape(o.stream) + "/events?dry_run=true", mediaType: o.mediaType, body: b.body}
			c.header = http.Header{}
			for name, value := range map[string]string{"Headgate-Key": o.key, "Headgate-Ordering": o.ordering} {
				if value != "" {
					c.header.Set(name, value)
				}
			}
			_, err = to.do(ctx, c, &answer)
			return answer, err
		}, cut(file, o.mediaType, explainedAtOnce))
	}
	return cmd
}

// explainedAtOnce is less than what one dry run explains.
const explainedAtOnce = 500

// trialAnswer is the answer to a dry run.
type trialAnswer struct {
	Events    []json.RawMessage `json:"events"`
	Truncated bool              `json:"events_truncated"`
}

// explained is what a line of text says of an event.
type explained struct {
	Index     int     `json:"index"`
	Verdict   string  `json:"verdict"`
	By        string  `json:"by"`
	ID        *string `json:"id"`
	Key       *string `json:"key"`
	KeyBase64 string  `json:"key_base64"`
	KeyFrom   string  `json:"key_from"`
	Hash      string  `json:"hash"`
	Slot      *int32  `json:"slot"`
	Partition *int32  `json:"partition"`
	Code      string  `json:"code"`
	Detail    string  `json:"detail"`
	Failed    string  `json:"failed"`
}

// explainer prints a line for each event.
type explainer struct {
	to      *remote
	options explainOptions
	file    string
	out     *bufio.Writer
}

func (e *explainer) explainAll(try func(*batch) (trialAnswer, error), source batches) error {
	for {
		b, err := source.next()
		if err == io.EOF {
			return e.out.Flush()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.file, err)
		}
		a, err := try(b)
		if err != nil {
			return err
		}
		for i, doc := range a.Events {
			if err := e.print(b, i, doc); err != nil {
				return err
			}
		}
		if a.Truncated {
			fmt.Fprintln(e.out, "... only so many events of one request are explained")
		}
		if err := e.out.Flush(); err != nil {
			return err
		}
	}
}

// print writes one line; as JSON the answer's own, with the event's number in the file in front.
func (e *explainer) print(b *batch, i int, doc json.RawMessage) error {
	if e.options.output == "json" {
		_, err := fmt.Fprintf(e.out, "{\"number\":%d,%s\n", b.first+i, doc[1:])
		return err
	}
	var x explained
	if err := json.Unmarshal(doc, &x); err != nil {
		return e.to.foreign(err)
	}
	place := fmt.Sprintf("event %d", b.first+i)
	if i < len(b.lines) {
		place = fmt.Sprintf("%s:%d", e.file, b.lines[i])
	}
	_, err := fmt.Fprintf(e.out, "%s: %s\n", place, x.line())
	return err
}

// line is the explanation as text.
func (x *explained) line() string {
	var w strings.Builder
	w.WriteString(x.Verdict)
	if x.By != "" {
		w.WriteString(" by " + x.By)
	}
	if x.Code != "" {
		w.WriteString(": " + x.Code + ": " + x.Detail)
	}
	if x.Failed != "" {
		w.WriteString(" although " + x.Failed)
	}
	if x.ID != nil {
		w.WriteString(", id " + strconv.Quote(*x.ID))
	}
	switch {
	case x.Key != nil:
		w.WriteString(", key " + strconv.Quote(*x.Key) + " from " + x.KeyFrom)
	case x.KeyBase64 != "":
		w.WriteString(", key (base64) " + x.KeyBase64 + " from " + x.KeyFrom)
	case x.Verdict == "accepted":
		w.WriteString(", no key")
	}
	if x.Slot != nil {
		fmt.Fprintf(&w, ", hash %s, slot %d", x.Hash, *x.Slot)
	}
	switch {
	case x.Partition != nil:
		fmt.Fprintf(&w, ", partition %d", *x.Partition)
	case x.Verdict == "accepted":
		w.WriteString(", on a stream that is not made yet")
	}
	return w.String()
}
