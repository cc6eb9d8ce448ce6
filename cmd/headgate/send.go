package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/event"
)

// sendOptions are the flags of send.
type sendOptions struct {
	stream, ack, mediaType string
	ordering, rejected     string
	batch                  int
	rate                   float64
	timeout                time.Duration
}

func newSendCommand(c clock) *cobra.Command {
	var o sendOptions
	cmd := &cobra.Command{
		Use:   "send --stream NAME FILE|-",
		Short: "Post the events of a file",
		Long: "Post the events of a file, in their order, one request at a time. The last line on stdout is a JSON summary;\n" +
			"rejected events are named on stderr. Exit code 1 if any event was rejected or not sent.\n" +
			"--type says what the file is: lines (application/x-ndjson, text/plain), length-prefixed events\n" +
			"(application/vnd.headgate.events), or CloudEvents, one after the other or as an array, sent one by one\n" +
			"(application/cloudevents+json) or in batches (application/cloudevents-batch+json). A file of any other type\n" +
			"is one request.\n" +
			"--ordering strict keeps the order of each key, source that of each key and producer, none asks for no order: for\n" +
			"the events of the file, where that is the order of the stream or a stricter one. Ask for it always or never for a\n" +
			"key: with an order of its own it is another key.",
		Example: "  headgate send --stream web access.ndjson\n  zcat old.ndjson.gz | headgate send --stream web -\n" +
			"  headgate send --stream web --type application/cloudevents-batch+json orders.json",
		Args: cobra.ExactArgs(1),
	}
	at := routeFlags(cmd)
	streamFlag(cmd, &o.stream)
	cmd.Flags().StringVar(&o.ack, "ack", "", "wait until events are accepted, durable or delivered (default: the stream's)")
	cmd.Flags().StringVar(&o.ordering, "ordering", "", "order that the events keep, strict, source or none (Headgate-Ordering): the stream's or a stricter one")
	cmd.Flags().StringVar(&o.mediaType, "type", ndjson, "media type of the file")
	cmd.Flags().IntVar(&o.batch, "batch", 500, "most events in a request")
	cmd.Flags().Float64Var(&o.rate, "rate", 0, "most events a second, on average (0: as fast as it goes)")
	o.timeout = time.Minute
	cmd.Flags().Var((*span)(&o.timeout), "timeout", "how long a request, and what of it can be taken later, is tried again")
	cmd.Flags().StringVar(&o.rejected, "rejected", "", "file for the rejected events, which can be sent like the one they come from")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		to, err := at.dial()
		if err != nil {
			return err
		}
		file, size, err := openInput(args[0], cmd.InOrStdin())
		if err != nil {
			return err
		}
		defer file.Close()
		s := &sender{name: rand.Text(), to: to, clock: c, options: o, file: shownName(args[0]), stderr: cmd.ErrOrStderr()}
		if o.rejected != "" {
			f, err := createBeside(o.rejected, file)
			if err != nil {
				return usageError(fmt.Errorf("--rejected: %w", err))
			}
			defer f.Close()
			s.rejected = f
		}
		s.progress = newProgress(s.stderr, size, c.now())
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		err = at.send(ctx, s, cut(file, o.mediaType, o.batch))
		return errors.Join(err, json.NewEncoder(cmd.OutOrStdout()).Encode(s.total))
	}
	return cmd
}

func (o *sendOptions) check() error {
	if err := requireStream(o.stream); err != nil {
		return err
	}
	if _, ok := event.ParseLevel(o.ack); !ok && o.ack != "" {
		return usagef("--ack is accepted, durable or delivered, not %q", o.ack)
	}
	if !slices.Contains([]string{"", "strict", "source", "none"}, o.ordering) {
		return usagef("--ordering is strict, source or none, not %q", o.ordering)
	}
	if o.batch < 1 || o.rate < 0 || o.timeout < 0 {
		return usagef("--batch is at least 1; --rate and --timeout are not negative")
	}
	return nil
}

// path is where the events go.
func (o *sendOptions) path() string {
	p := "/v1/streams/" + url.PathEscape(o.stream) + "/events"
	if o.ack != "" {
		p += "?ack=" + o.ack
	}
	return p
}

// orderingField asks for an order, in the header of a request or of a session.
const orderingField = "Headgate-Ordering"

// openInput opens a file, or stdin for "-"; size is 0 when it is not known.
func openInput(name string, stdin io.Reader) (file io.ReadCloser, size int64, err error) {
	if name == "-" {
		return io.NopCloser(stdin), 0, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, usageError(err)
	}
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		err = fmt.Errorf("%s is a folder", name)
	}
	if err != nil {
		return nil, 0, errors.Join(usageError(err), f.Close())
	}
	return f, st.Size(), nil
}

// shownName is what places in a file are said of.
func shownName(file string) string {
	if file == "-" {
		return "stdin"
	}
	return file
}

// createBeside makes a file, or empties it, unless it is the one that is read.
func createBeside(name string, read io.Reader) (*os.File, error) {
	if f, ok := read.(*os.File); ok {
		mine, err := f.Stat()
		other, errOther := os.Stat(name)
		if err == nil && errOther == nil && os.SameFile(mine, other) {
			return nil, fmt.Errorf("%s is the file that is sent", name)
		}
	}
	return os.Create(name)
}

// summary is the last line of send. The five counts add up to Sent.
type summary struct {
	Sent         int     `json:"sent"` // events that the gateway answered for
	Accepted     int     `json:"accepted"`
	Filtered     int     `json:"filtered"`
	Rejected     int     `json:"rejected"`
	Duplicates   int     `json:"duplicates"`
	DeadLettered int     `json:"deadlettered"`
	Seconds      float64 `json:"seconds"`
}

// seconds is d as JSON shows it.
func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }
