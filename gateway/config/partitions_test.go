package config

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPartitionsInBothForms(t *testing.T) {
	for doc, want := range map[string]string{
		`{}`:                                 `16`,
		`{"partitions":3}`:                   `3`,
		`{"partitions":"3"}`:                 `3`,
		`{"partitions":{"max":3}}`:           `3`,
		`{"partitions":{"min":3,"max":3}}`:   `3`,
		`{"partitions":{"target":"5MiB/s"}}`: `{"min":1,"max":16,"target":"5MiB/s"}`,
		`{"partitions":{"min":4,"max":64,"target":"5MiB"}}`:                          `{"min":4,"max":64,"target":"5MiB/s"}`,
		`{"partitions":{"min":4,"max":64,"target":1048576}}`:                         `{"min":4,"max":64,"target":"1MiB/s"}`,
		`{"partitions":{"min":4,"max":4,"target":"1MiB/s"},"adaptive":{"off":true}}`: `{"min":4,"max":4,"target":"1MiB/s"}`,
	} {
		s, err := ParseStream([]byte(doc))
		if err != nil {
			t.Errorf("%s: %v", doc, err)
			continue
		}
		got, err := json.Marshal(s.Partitions)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", doc, got, err)
		}
		again, err := ParseStream(s.Document())
		if err != nil || again.Partitions != s.Partitions {
			t.Errorf("%s: read again %+v, %v", doc, again.Partitions, err)
		}
	}
}

func TestPartitionsThatContradictThemselves(t *testing.T) {
	for doc, want := range map[string]string{
		`{"partitions":{"min":9,"max":4,"target":"1MiB/s"}}`:                         "partitions.min: must be 1 to max, which is 4, got 9",
		`{"partitions":{"min":4,"max":257,"target":"1MiB/s"}}`:                       "partitions.max: must be 1 to 256, got 257",
		`{"partitions":{"min":-1,"max":4,"target":"1MiB/s"}}`:                        "partitions.min: must be 1 to max, which is 4, got -1",
		`{"partitions":{"min":0,"max":4,"target":"1MiB/s"}}`:                         "partitions.min: must be more than 0",
		`{"partitions":{"min":2,"max":4}}`:                                           "partitions.target: is needed for a number that follows the load",
		`{"partitions":{"min":2,"max":4,"target":"1KiB/s"}}`:                         "partitions.target: must be at least 16KiB/s, got 1KiB/s",
		`{"partitions":{"min":2,"max":4,"target":"fast"}}`:                           "partitions.target: ",
		`{"partitions":{"min":2,"max":4,"target":"1MiB/s"},"hash":"murmur2"}`:        "partitions: the number is fixed with hash: murmur2",
		`{"partitions":{"min":2,"max":4,"target":"1MiB/s"},"adaptive":{"off":true}}`: "partitions: the number cannot follow the load while adaptive.off",
		`{"partitions":{"min":2,"max":4,"target":"1MiB/s"},"codec":"gzip"}`:          "partitions: the number cannot follow the load with codec: gzip",
		`{"partitions":{"mini":2,"max":4,"target":"1MiB/s"}}`:                        "partitions.mini: unknown setting",
	} {
		if _, err := ParseStream([]byte(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", doc, err, want)
		}
	}
	if _, err := ParseStream([]byte(`{"partitions":{"min":2,"max":4,"target":"1MiB/s"},"codec":"gzip","ordering":"none"}`)); err != nil {
		t.Error(err)
	}
}
