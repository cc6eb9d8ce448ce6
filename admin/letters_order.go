package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/headgate-io/headgate/event"
)

// ReplaySums counts what has become of the letters of a replay. Of Selected letters, Replayed + Filtered + Failed + Left.
type ReplaySums struct {
	Selected uint64 `json:"selected"` // open letters that were meant when it began
	Replayed uint64 `json:"replayed"` // they are in their stream
	Filtered uint64 `json:"filtered"` // a plugin dropped them
	Failed   uint64 `json:"failed"`   // they were set aside again, as new letters
	Left     uint64 `json:"left"`     // letters as before: refused, or not come to
}

// PurgeSums counts what has become of the letters of a purge.
type PurgeSums struct {
	Selected uint64 `json:"selected"`
	Purged   uint64 `json:"purged"`
	Left     uint64 `json:"left"`
}

// letterOrder is the body of POST /v1/deadletter/{stream}.
type letterOrder struct {
	Action  string   `json:"action"`
	All     bool     `json:"all"`
	Letters []string `json:"letters"`
	From    uint64   `json:"from"`
	To      uint64   `json:"to"`
	Code    string   `json:"code"`
	Plugin  string   `json:"plugin"`
	Reason  string   `json:"reason"`
	Since   string   `json:"since"`
	Until   string   `json:"until"`
	Limit   uint64   `json:"limit"`
	Rate    int      `json:"rate"`
	DryRun  bool     `json:"dry_run"`
}

const (
	letterOrderBytes = 64 << 10
	mostNamed        = 1000 // letters of an order
	mostRate         = 100_000
)

func (o *letterOrder) parse(now time.Time) (LetterOrder, error) {
	out := LetterOrder{Limit: o.Limit, Rate: o.Rate, DryRun: o.DryRun, Filter: LetterFilter{
		Letters: o.Letters, From: o.From, To: o.To, Code: o.Code, Plugin: o.Plugin, Reason: o.Reason,
	}}
	var err error
	if o.Since != "" {
		out.Filter.Since, err = parseMoment(o.Since, now)
	}
	if o.Until != "" && err == nil {
		out.Filter.Until, err = parseMoment(o.Until, now)
	}
	switch {
	case err != nil:
		return out, event.Problemf(event.BadParameter, "since, until: give a time as 2026-03-02T08:00:00Z, or an age as 2h: %v", err)
	case o.Action != "replay" && o.Action != "purge":
		return out, event.Problemf(event.BadParameter, `action: say "replay" or "purge"`)
	case o.All != out.Filter.isEmpty():
		return out, event.Problemf(event.BadParameter, `say which letters: by letters, from, to, code, plugin, reason, since or until; or all of them with "all": true alone`)
	case len(o.Letters) > mostNamed:
		return out, event.Problemf(event.BadParameter, "letters: name %d at most; with from and to a range is meant", mostNamed)
	case o.Rate < 0 || o.Rate > mostRate || o.Rate > 0 && o.Action != "replay":
		return out, event.Problemf(event.BadParameter, "rate: how many events a second are replayed, 1 to %d", mostRate)
	}
	return out, nil
}

// letterReport is a line of the answer. The last one has done.
type letterReport struct {
	Action string `json:"action"`
	DryRun bool   `json:"dry_run,omitempty"`
	Sums   any    `json:"sums"`
	Done   bool   `json:"done"`
	Error  string `json:"error,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// steerLetters replays or purges letters.
func (s *Server) steerLetters(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r, "application/json", letterOrderBytes)
	if err != nil {
		return err
	}
	var given letterOrder
	if err := decodeStrict(body, &given); err != nil {
		return err
	}
	order, err := given.parse(time.Now())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	stream := r.PathValue("stream")
	f := newFeed(w, Query{Stream: stream, Follow: true}, s.cfg.RowBytes, 0)
	// To find the letters may take longer than a request usually may.
	_ = f.control.SetReadDeadline(time.Time{})
	_ = f.control.SetWriteDeadline(time.Time{})
	if given.Action == "purge" {
		sums, err := s.deps.Letters.PurgeLetters(ctx, stream, order)
		return s.lastReport(f, r, letterReport{Action: given.Action, DryRun: order.DryRun, Sums: sums}, err)
	}
	sums, err := s.deps.Letters.Replay(ctx, stream, order, func(sums ReplaySums) error {
		return f.report(letterReport{Action: given.Action, DryRun: order.DryRun, Sums: sums})
	})
	return s.lastReport(f, r, letterReport{Action: given.Action, DryRun: order.DryRun, Sums: sums}, err)
}

// report sends a line.
func (f *feed) report(line letterReport) error {
	if err := f.start(); err != nil {
		return err
	}
	doc, err := json.Marshal(line)
	if err != nil {
		return err
	}
	f.buf = append(append(f.buf, doc...), '\n')
	return f.flush()
}

// lastReport ends the answer. What failed before there was one is a problem like any other.
func (s *Server) lastReport(f *feed, r *http.Request, line letterReport, err error) error {
	if err != nil && !f.started {
		return err
	}
	if err != nil {
		p := s.asProblem(r, strings.TrimSpace(r.Header.Get("X-Request-Id")), err)
		line.Error, line.Detail = string(p.Code), p.Detail
	}
	line.Done = true
	_ = f.report(line) // the client is gone, or not: nothing is left to do
	return nil
}
