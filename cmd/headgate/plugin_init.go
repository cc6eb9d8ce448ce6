package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/sdk"
)

func newPluginInitCommand() *cobra.Command {
	var lang string
	cmd := &cobra.Command{
		Use:     "init --lang LANGUAGE NAME",
		Short:   "Begin a plugin: a folder with everything in it but the language's own compiler",
		Long:    "Make the folder NAME with a small plugin, the SDK, sample events and what should become of them. Nothing is fetched.",
		Example: "  headgate plugin init --lang rust demo && cd demo && headgate plugin build && headgate plugin test",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&lang, "lang", "", "language: "+strings.Join(sdk.Languages(), ", ")+" (required)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if lang == "" {
			return usagef("in which language? give --lang %s", strings.Join(sdk.Languages(), ", "))
		}
		dir, name := args[0], filepath.Base(args[0])
		if err := checkProjectName(name); err != nil {
			return err
		}
		files, err := sdk.Scaffold(lang, name)
		if err != nil {
			return usageError(err)
		}
		if err := writeProject(dir, files); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: a plugin in %s with %d files; next:\n  cd %s\n  headgate plugin build\n  headgate plugin test\n", dir, lang, len(files), dir)
		return nil
	}
	return cmd
}

// writeProject writes the files of a new folder, and none into one that has any.
func writeProject(dir string, files map[string][]byte) error {
	if there, err := os.ReadDir(dir); err == nil && len(there) > 0 {
		return usagef("%s is there already and not empty; nothing was written", dir)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(file, files[name], 0o666); err != nil {
			return err
		}
	}
	return nil
}
