package main

import (
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

func newDeadLetterCommand() *cobra.Command {
	cmd := newGroup("deadletter", "Look at what was set aside of a stream, take it again, or let it go")
	at := adminFlag(cmd)
	cmd.AddCommand(
		newDeadLetterListCommand(at),
		newDeadLetterShowCommand(at),
		newDeadLetterReplayCommand(at),
		newDeadLetterPurgeCommand(at),
	)
	return cmd
}

func deadLetterPath(stream string) string { return "/v1/deadletter/" + url.PathEscape(stream) }

// letterFilter is the flags that say which letters are meant.
type letterFilter struct {
	code, plugin, reason, since, until string
	from, to, limit                    uint64
}

// flags adds those that list and the orders have in common.
func (f *letterFilter) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.code, "code", "", "only those with this code, as plugin_failed or backend_refused")
	cmd.Flags().StringVar(&f.plugin, "plugin", "", "only those on which this plugin failed")
	cmd.Flags().StringVar(&f.reason, "reason", "", "only those whose reason has this in it")
	cmd.Flags().StringVar(&f.since, "since", "", "only those stored since: a time as 2026-03-02T08:00:00Z, or an age as 2h")
	cmd.Flags().StringVar(&f.until, "until", "", "only those stored before")
	cmd.Flags().Uint64Var(&f.from, "from", 0, "from this number on")
	cmd.Flags().Uint64VarP(&f.limit, "limit", "n", 0, "the first so many (0: all)")
}

// texts are the filters that are set and are texts, by the names that the API has for them.
func (f *letterFilter) texts() map[string]string {
	all := map[string]string{"code": f.code, "plugin": f.plugin, "reason": f.reason, "since": f.since, "until": f.until}
	for name, value := range all {
		if value == "" {
			delete(all, name)
		}
	}
	return all
}

func (f *letterFilter) query() url.Values {
	q := url.Values{}
	for name, value := range f.texts() {
		q.Set(name, value)
	}
	if f.from > 0 {
		q.Set("from", strconv.FormatUint(f.from, 10))
	}
	if f.limit > 0 {
		q.Set("limit", strconv.FormatUint(f.limit, 10))
	}
	return q
}
