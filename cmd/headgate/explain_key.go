package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

// placed is what a line of text says of a key.
type placed struct {
	Partition int32  `json:"partition"`
	Why       string `json:"why"`
	Split     *struct {
		Fanout int    `json:"fanout"`
		By     string `json:"by"`
	} `json:"split"`
}

// explainKey asks the operator's API where the events of a key go.
func explainKey(cmd *cobra.Command, operator *address, o *explainOptions) error {
	if !cmd.Flags().Changed("key") {
		return usagef("name a FILE with events, - for stdin; or say --key KEY for where that key goes")
	}
	to, err := operator.dial()
	if err != nil {
		return err
	}
	query := url.Values{"key": {o.key}}
	for name, value := range map[string]string{"source": o.source, "ordering": o.ordering} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var answer json.RawMessage
	c := call{method: http.MethodGet, path: streamPath(o.stream) + "/explain?" + query.Encode()}
	if _, err := to.do(cmd.Context(), c, &answer); err != nil {
		return err
	}
	if o.output == "json" {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", answer)
		return err
	}
	var p placed
	if err := json.Unmarshal(answer, &p); err != nil {
		return to.foreign(err)
	}
	if p.Split != nil && p.Split.By == "source" && o.source == "" {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "key %q is split by source over %d partitions: --source SOURCE says where those of one producer go (-o json: all of them)\n", o.key, p.Split.Fanout)
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "key %q goes to partition %d: %s\n", o.key, p.Partition, p.Why)
	return err
}
