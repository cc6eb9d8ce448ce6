package main

import (
	"encoding/json"
	"fmt"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/plugins"
)

// trialSummary is the last line; its counts add up to Events.
type trialSummary struct {
	Events   int     `json:"events"`
	Kept     int     `json:"kept"`
	Filtered int     `json:"filtered"`
	Rejected int     `json:"rejected"`
	Failed   int     `json:"failed"`                 // of the rejected, those on which the plugin itself failed
	Cost     float64 `json:"ns_per_event,omitempty"` // of the whole chain on one core; 0: too few events to tell
}

// trialEvent is what became of one event.
type trialEvent struct {
	Event int `json:"event"` // from 1
	plugins.Outcome
	Detail string `json:"detail,omitempty"`
}

// print prints what became of each event of a batch.
func (t *trial) print(b *batch, eb *event.Batch) error {
	faults := map[int]event.Error{}
	for _, e := range eb.Errors {
		faults[e.Index] = e
	}
	for i := range eb.Events {
		e := &eb.Events[i]
		line := trialEvent{Event: b.first + i, Outcome: plugins.OutcomeOf(e, b.event(i), faults[i]), Detail: faults[i].Detail}
		t.count(line)
		if err := t.printEvent(line); err != nil {
			return err
		}
		if err := t.compare(line); err != nil {
			return err
		}
	}
	return nil
}

// compare says what was expected of an event that became something else.
func (t *trial) compare(line trialEvent) error {
	if t.expect == nil {
		return nil
	}
	want, err := t.expect.check(line)
	if err == nil && want != "" {
		_, err = fmt.Fprintf(t.stderr, "event %d: expected %s\n", line.Event, want)
	}
	return err
}

func (t *trial) count(line trialEvent) {
	t.total.Events++
	switch line.Verdict {
	case "kept":
		t.total.Kept++
	case "filtered":
		t.total.Filtered++
	default:
		t.total.Rejected++
	}
	if line.Code == event.PluginFailed {
		t.total.Failed++
	}
}

func (t *trial) printEvent(e trialEvent) (err error) {
	switch {
	case t.json:
		err = json.NewEncoder(t.out).Encode(e)
	case e.Detail != "":
		_, err = fmt.Fprintf(t.out, "%d\t%s\t%s: %s\n", e.Event, e.Verdict, e.Code, e.Detail)
	case e.Verdict == "kept":
		_, err = fmt.Fprintf(t.out, "%d\tkept\t%s\n", e.Event, describeOutcome(e.Outcome))
	default:
		_, err = fmt.Fprintf(t.out, "%d\t%s\n", e.Event, e.Verdict)
	}
	return err
}

func describeOutcome(s plugins.Outcome) string {
	text := "no key"
	switch {
	case s.Key != nil:
		text = "key " + fmt.Sprintf("%q", *s.Key)
	case s.KeyBase64 != nil:
		text = fmt.Sprintf("key %q", s.KeyBase64)
	}
	switch {
	case s.Data != nil:
		text += "\tnow " + *s.Data
	case s.DataBase64 != nil:
		text += fmt.Sprintf("\tnow %q", s.DataBase64)
	}
	return text
}

func (t *trial) summary() error {
	if t.json {
		return json.NewEncoder(t.out).Encode(t.total)
	}
	cost := fmt.Sprintf("%.0f ns an event", t.total.Cost)
	if t.total.Cost == 0 {
		cost = fmt.Sprintf("what an event costs shows with %d events or more", enoughEvents+trialBatch)
	}
	_, err := fmt.Fprintf(t.out, "%d events: %d kept, %d filtered, %d rejected; %s\n",
		t.total.Events, t.total.Kept, t.total.Filtered, t.total.Rejected, cost)
	return err
}
