package gateway

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward/jetstream"
	"github.com/headgate-io/headgate/internal/journal"
	"github.com/headgate-io/headgate/internal/natsd"
	"github.com/headgate-io/headgate/internal/wholefile"
)

// lose is called when events of a stream are found lost that were safe: their ids, and the answers and sessions that called them so, must
// not turn away who sends them again. Which ids they had nobody can tell: all that are finished are forgotten. Answers do not say
// of which stream they are.
func (g *Gateway) lose(s *stream, found string) {
	now := time.Now()
	ids, answers := s.ids.Forget(now), g.keys.Forget(now)
	s.ids.Flush()
	g.keys.Flush()
	sessions := g.ingest.ForgetSessions(s.name)
	for _, log := range []*journal.Journal{s.idLog, g.keyLog, g.sessionLog} {
		if log != nil {
			_ = log.Sync() // it says itself what it could not write
		}
	}
	if ids+answers+sessions == 0 {
		return // another lane of the same loss has said it
	}
	g.log.Error("WHAT IS REMEMBERED OF REPETITIONS IS FORGOTTEN, since events were lost: sent again, they are stored, and so are those that were not lost",
		"stream", s.name, "found", found, "ids", ids, "answers_by_idempotency_key", answers, "sessions", sessions)
}

// loser is lose for a stream that is not named by itself: the ids of letters are those of the stream that they come from.
func (g *Gateway) loser(s *stream, found string) func() {
	return func() {
		of := s
		if s.deadLetter == nil {
			all := g.streams.Load()
			if all == nil {
				return
			}
			of = (*all)[parentOf(s.name)]
		}
		if of != nil {
			g.lose(of, found)
		}
	}
}

func parentOf(stream string) string { return strings.TrimSuffix(stream, event.DeadLetterSuffix) }

// loseDamaged is told of what the embedded backend is found to have lost while it runs.
func (g *Gateway) loseDamaged(d natsd.Damage) {
	all := g.streams.Load()
	if all == nil {
		return
	}
	if s := (*all)[parentOf(jetstream.StreamOf(d.Stream))]; s != nil {
		g.lose(s, "the embedded backend")
		g.noteLoss(s.name, d.Found)
	}
}

// loseBefore forgets what an earlier process remembered, when there is a loss that no process has done that for.
func (g *Gateway) loseBefore(s *stream) {
	if s.deadLetter == nil {
		return
	}
	var newest time.Time
	for _, d := range g.stores.events.EverDamaged() {
		if parentOf(jetstream.StreamOf(d.Stream)) == s.name && d.Found.After(newest) {
			newest = d.Found
		}
	}
	if newest.After(g.notedLoss(s.name)) {
		g.lose(s, "the embedded backend")
		g.noteLoss(s.name, newest)
	}
	_, gone := g.spoolsGone.Load(s.name)
	if gone || s.spool != nil && s.spool.Stats().Lost > 0 {
		g.lose(s, "the spool")
	}
}

// lossFile says when the last damage was found for which everything was forgotten.
func (g *Gateway) lossFile(stream string) string { return g.folder.WindowFolder("losses", stream) }

func (g *Gateway) notedLoss(stream string) (at time.Time) {
	text, err := os.ReadFile(g.lossFile(stream))
	if err == nil {
		err = at.UnmarshalText(text)
	}
	if err != nil {
		return time.Time{}
	}
	return at
}

func (g *Gateway) noteLoss(stream string, at time.Time) {
	path := g.lossFile(stream)
	text, err := at.MarshalText()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = wholefile.Write(path, text)
	}
	if err != nil { // the next start does it again
		g.log.Warn("that repetitions were forgotten can't be noted: the next start forgets them again", "stream", stream, "error", err)
	}
}
