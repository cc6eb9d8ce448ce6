package natsd

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/headgate-io/headgate/internal/wholefile"
)

// known is what a stream held when its server was stopped in order.
type known struct {
	Messages uint64 `json:"messages"`
	Last     uint64 `json:"last"` // sequence
}

func (s *Server) knownPath() string { return filepath.Join(s.cfg.Dir, "stopped.json") }

// holdings returns what the streams hold now.
func (s *Server) holdings() (map[string]known, error) {
	all := map[string]known{}
	ns := s.ns.Load()
	if ns == nil {
		return nil, server.ErrServerNotRunning
	}
	info, err := ns.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	if err != nil {
		return nil, err
	}
	for _, account := range info.AccountDetails {
		for _, stream := range account.Streams {
			all[stream.Name] = known{Messages: stream.State.Msgs, Last: stream.State.LastSeq}
		}
	}
	return all, nil
}

// remember writes down what the store holds, for the next start to compare. Nothing changes it any more.
func (s *Server) remember() {
	all, err := s.holdings()
	var doc []byte
	if err == nil {
		doc, err = json.Marshal(all)
	}
	if err == nil {
		err = wholefile.Write(s.knownPath(), doc)
	}
	if err != nil {
		s.log.Warn("what the store holds is not written down, so the next start cannot tell whether all of it is there", "error", err)
	}
}

// recall compares the store with what it held when it was stopped in order, if it was, and reports all that is lost.
func (s *Server) recall() error {
	reported, err := readReport(s.cfg.Aside)
	if err != nil {
		return err
	}
	missing, err := s.missing(reported)
	if err == nil && s.cfg.Aside != "" {
		err = errors.Join(addToReport(s.cfg.Aside, missing), addToReport(s.cfg.Dir, missing))
	}
	if err == nil && s.cfg.Aside == "" && len(missing) > 0 {
		return &DamagedError{missing}
	}
	if err != nil {
		return err
	}
	if err := os.Remove(s.knownPath()); err != nil && !errors.Is(err, fs.ErrNotExist) { // from now on it is not true any more
		return err
	}
	s.damage = append(reported, missing...)
	if s.everything, err = readReport(s.cfg.Dir); err != nil {
		return err
	}
	for _, d := range s.damage {
		s.sayLost(d)
	}
	return nil
}

func (s *Server) sayLost(d Damage) {
	s.log.Error("STORED MESSAGES ARE LOST: the store is damaged", "stream", d.Stream, "messages_at_most", d.Messages, "from", d.From, "to", d.To,
		"block", d.Block, "found", d.Found, "report", filepath.Join(s.cfg.Aside, reportName))
}

func (s *Server) missing(reported []Damage) (all []Damage, err error) {
	doc, err := os.ReadFile(s.knownPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it was not stopped in order
	}
	if err != nil {
		return nil, err
	}
	var before map[string]known
	if err := json.Unmarshal(doc, &before); err != nil {
		return nil, nil // of no use, but no reason not to start
	}
	info, err := os.Stat(s.knownPath())
	if err != nil {
		return nil, err
	}
	return s.compare(before, reported, info.ModTime())
}

// compare says what the store has less than before, apart from what was reported since then.
func (s *Server) compare(before map[string]known, reported []Damage, since time.Time) (all []Damage, err error) {
	now, err := s.holdings()
	if err != nil {
		return nil, err
	}
	for stream, was := range before {
		is := now[stream]
		for _, d := range reported {
			if d.Stream == stream && d.Found.After(since) { // found at this start
				is.Messages += d.Messages
			}
		}
		if is.Messages < was.Messages {
			all = append(all, Damage{Stream: stream, Messages: was.Messages - is.Messages, From: 1, To: was.Last, Found: time.Now().UTC()})
		}
	}
	return all, nil
}
