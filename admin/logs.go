package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/event"
)

// Logs has what plugins log and what happens to them. It is called concurrently.
type Logs interface {
	// PluginLogs hands over the lines that are there, then, with Follow, those that come, until ctx ends or visit returns
	// an error, which it returns; otherwise errors are *event.Problem: unknown_plugin. It visits once at least.
	PluginLogs(ctx context.Context, q LogQuery, visit func([]LogLine) error) error
}

// LogQuery says which lines to read.
type LogQuery struct {
	Plugin string
	Digest string // or its start; empty: of all versions
	Last   int    // so many of those that are there; 0: all
	Follow bool
}

// LogLine is one line of a plugin's logs.
type LogLine struct {
	Number  uint64    `json:"number"` // goes upwards
	Time    time.Time `json:"time"`
	Plugin  string    `json:"plugin"`
	Version string    `json:"version"` // the start of its digest
	Level   string    `json:"level"`   // debug, info, warn or error
	From    string    `json:"from"`    // guest or gateway
	Message string    `json:"message"`
}

func (s *Server) logs(w http.ResponseWriter, r *http.Request) error {
	q, err := parseLogQuery(r.PathValue("plugin"), r.URL.Query())
	if err != nil {
		return err
	}
	return s.readAs(r, newFeed(w, Query{Follow: q.Follow}, 0, 0), func(ctx context.Context, f *feed) error {
		return s.deps.Logs.PluginLogs(ctx, q, f.logLines)
	})
}

// logLines sends a line of JSON per line.
func (f *feed) logLines(lines []LogLine) error {
	if err := f.start(); err != nil {
		return err
	}
	for i := range lines {
		doc, err := json.Marshal(lines[i])
		if err != nil {
			return err
		}
		f.buf = append(append(f.buf, doc...), '\n')
	}
	return f.rest()
}

func parseLogQuery(plugin string, values url.Values) (LogQuery, error) {
	q := LogQuery{Plugin: plugin}
	for name, list := range values {
		var err error
		switch name {
		case "digest":
			q.Digest = strings.ToLower(list[0])
		case "last":
			q.Last, err = strconv.Atoi(list[0])
		case "follow":
			q.Follow, err = strconv.ParseBool(list[0])
		default:
			err = strconv.ErrSyntax
		}
		if err != nil || len(list) != 1 || q.Last < 0 {
			return q, event.Problemf(event.BadParameter, "%s=%s: give digest=DIGEST, last=N, follow=true|false, each once", name, strings.Join(list, ","))
		}
	}
	return q, nil
}
