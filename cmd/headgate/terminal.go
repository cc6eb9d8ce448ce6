package main

import (
	"encoding/json"
	"io"
	"os"
)

// isTerminal reports whether someone watches f.
func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// watched reports whether w is a terminal.
func watched(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isTerminal(f)
}

// printJSON prints v for people and programs.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
