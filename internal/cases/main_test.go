package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestThePageIsAsTheTestsAre(t *testing.T) {
	root := filepath.Join("..", "..")
	want, err := table(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "docs", "cases.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/cases.md is not what the tests are: run `make cases`")
	}
}

// Cases that are named by a test and are not in the list are mistakes, but for faults, which have numbers of their own.
func TestEveryNamedCaseIsListed(t *testing.T) {
	found, err := tests(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for id, names := range found {
		if id[0] != 'F' && !bytes.Contains([]byte(list), []byte("\n"+id+" ")) {
			t.Errorf("%s is no case: %v", id, names)
		}
	}
}
