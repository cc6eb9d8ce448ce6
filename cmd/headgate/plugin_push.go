package main

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/admin"
)

func newPluginPushCommand(at *address, clock clock) *cobra.Command {
	var output, signature string
	cmd := &cobra.Command{
		Use:   "push NAME [DIR | FILE]",
		Short: "Upload a module as the newest version of a plugin",
		Long: "Upload the module of a plugin's folder (default: here), or a FILE, as the newest version of the plugin NAME. A signature that\n" +
			"minisign has put beside it (minisign -Sm FILE makes FILE.minisig) goes with it. A module that is stored already is the same version,\n" +
			"and the newest again.",
		Args: cobra.RangeArgs(1, 2),
	}
	cmd.Flags().StringVar(&signature, "signature", "", "file with the module's minisign signature (default: MODULE.minisig, where it is there)")
	outputFlag(cmd, &output, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkOutput(output, "text", "json"); err != nil {
			return err
		}
		sub, err := openSubject(args[1:])
		if err != nil {
			return err
		}
		header, err := signatureHeader(signature, sub.file)
		if err != nil {
			return err
		}
		to, err := at.dial()
		if err != nil {
			return err
		}
		c := call{method: http.MethodPut, path: pluginPath(args[0]), mediaType: "application/wasm", body: sub.wasm, header: header}
		v, err := (&upload{to, c, clock, args[0]}).run(cmd)
		if err != nil {
			printFailedChecks(cmd.ErrOrStderr(), err)
			return err
		}
		if output == "json" {
			return printJSON(cmd.OutOrStdout(), v)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s %s (%d bytes; %s)\n", v.Name, v.Digest, v.Size, describe(v))
		return nil
	}
	return cmd
}

// signatureHeader reads the signature of a module, from the file given or from where minisign puts it.
func signatureHeader(file, module string) (http.Header, error) {
	text, err := os.ReadFile(cmp.Or(file, module+".minisig"))
	if file == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, usageError(err)
	}
	return http.Header{"Headgate-Signature": {base64.StdEncoding.EncodeToString(text)}}, nil
}

// describe says what a version does and what it was made with.
func describe(v admin.Version) string {
	return strings.Join(append([]string{v.Kind}, v.Languages...), ", ")
}

// printFailedChecks prints a line for each check that a refused upload failed.
func printFailedChecks(w io.Writer, err error) {
	refused, ok := errors.AsType[*refusedError](err)
	if !ok {
		return
	}
	var doc struct{ Checks []admin.Check }
	if json.Unmarshal(refused.body, &doc) != nil {
		return // not our answer: the error itself says so
	}
	for _, c := range doc.Checks {
		if !c.OK {
			fmt.Fprintf(w, "  %s: %s: %s\n", c.Check, c.Code, c.Detail)
		}
	}
}
