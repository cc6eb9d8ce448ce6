package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/plugins"
)

// noteUpload keeps in a plugin's logs what an upload came to.
func (g *Gateway) noteUpload(name string, r *plugins.Report) {
	if r.OK() {
		g.host.Note(name, r.Digest, slog.LevelInfo, fmt.Sprintf("uploaded and admitted: %d bytes, %s", r.Size, r.Kind))
	}
	for _, c := range r.Checks {
		switch {
		case !c.OK:
			g.host.Note(name, r.Digest, slog.LevelError, fmt.Sprintf("upload refused: %s: %s %s", c.Check, c.Code, c.Detail))
		case c.Detail != "":
			g.host.Note(name, r.Digest, slog.LevelInfo, c.Check+": "+c.Detail)
		}
	}
}

// PluginLogs returns what a plugin logged and what happened to it. See admin.Logs.
func (g *Gateway) PluginLogs(ctx context.Context, q admin.LogQuery, visit func([]admin.LogLine) error) error {
	all := plugins.LogQuery{Plugin: q.Plugin, Digest: q.Digest, Last: q.Last, Follow: q.Follow}
	return g.host.Logs(ctx, all, func(lines []plugins.LogLine, known bool) error {
		if !known {
			if _, err := g.Plugin(ctx, q.Plugin); err != nil {
				return err
			}
		}
		out := make([]admin.LogLine, len(lines))
		for i, l := range lines {
			out[i] = admin.LogLine{Number: l.Number, Time: l.Time, Plugin: q.Plugin, Version: l.Version, Level: strings.ToLower(l.Level.String()), From: "gateway", Message: l.Text}
			if l.Guest {
				out[i].From = "guest"
			}
		}
		return visit(out)
	})
}
