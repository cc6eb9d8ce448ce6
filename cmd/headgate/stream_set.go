package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/settings"
)

func newStreamSetCommand(at *address) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "set NAME path=value ... | set NAME --file FILE",
		Short: "Change settings of a stream, or its whole definition; creates the stream where it is missing",
		Long: "Change settings of a stream, or replace its whole definition by a file (YAML or JSON). Values are YAML; an empty\n" +
			"one takes the setting back to its default.",
		Example: "  headgate stream set web key.json=/remote_ip limits.event=2MiB\n  headgate stream set web --file web.yaml",
		Args:    cobra.MinimumNArgs(1),
	}
	cmd.Flags().StringVar(&file, "file", "", "the whole definition, YAML or JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, changed := args[0], args[1:]
		if (file == "") == (len(changed) == 0) {
			return usagef("give either path=value ... or --file FILE")
		}
		to, err := at.dial()
		if err != nil {
			return err
		}
		var d definition
		if file != "" {
			d, err = replaceStream(cmd.Context(), to, name, file)
		} else {
			d, err = changeStream(cmd.Context(), to, name, changed)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: revision %d\n", d.Name, d.Revision)
		return nil
	}
	return cmd
}

func replaceStream(ctx context.Context, to *remote, name, file string) (d definition, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return d, usageError(err)
	}
	tree, err := settings.Parse(text)
	if err != nil {
		return d, usagef("%s: %w", file, err)
	}
	return putStream(ctx, to, name, tree, nil)
}

// changes is how often a change is made again on what others have changed meanwhile.
const changes = 5

// changeStream reads the definition, changes it and writes it back unless it has changed meanwhile.
func changeStream(ctx context.Context, to *remote, name string, changed []string) (d definition, err error) {
	for range changes {
		tree, when, err := readStream(ctx, to, name)
		if err != nil {
			return d, err
		}
		for _, arg := range changed {
			if err := settings.Tree(tree).SetArgument(arg); err != nil {
				return d, usageError(err)
			}
		}
		d, err = putStream(ctx, to, name, tree, when)
		if refused, ok := errors.AsType[*refusedError](err); ok && refused.doc.Code == event.EtagMismatch {
			continue
		}
		return d, err
	}
	return d, fmt.Errorf("others keep changing %s; try again", name)
}

// readStream returns a stream's definition and the condition under which it may be replaced; an empty one when the
// stream does not exist.
func readStream(ctx context.Context, to *remote, name string) (tree map[string]any, when http.Header, err error) {
	var doc json.RawMessage
	h, err := to.do(ctx, call{method: http.MethodGet, path: streamPath(name)}, &doc)
	if refused, ok := errors.AsType[*refusedError](err); ok && refused.doc.Code == event.UnknownStream {
		return map[string]any{}, http.Header{"If-None-Match": {"*"}}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	in := json.NewDecoder(bytes.NewReader(doc))
	in.UseNumber()
	if err := in.Decode(&tree); err != nil || tree == nil {
		return nil, nil, to.foreign(errors.New("no definition of a stream"))
	}
	return tree, http.Header{"If-Match": {h.Get("ETag")}}, nil
}

func putStream(ctx context.Context, to *remote, name string, tree map[string]any, when http.Header) (d definition, err error) {
	body, err := json.Marshal(tree)
	if err != nil {
		return d, usageError(err)
	}
	c := call{method: http.MethodPut, path: streamPath(name), mediaType: "application/json", body: body, header: when}
	_, err = to.do(ctx, c, &d)
	return d, err
}
