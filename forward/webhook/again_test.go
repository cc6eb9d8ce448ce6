package webhook_test

import (
	"testing"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
	"github.com/headgate-io/headgate/forward/webhook"
)

// A run that the node may have stored already is marked, and no other: a node says of 429 and 503 that it took nothing.
func TestN06ARepetitionIsMarked(t *testing.T) {
	for name, c := range map[string]struct {
		answer forwardtest.Answer
		marked bool
	}{
		"lost answer": {forwardtest.Answer{Cut: forwardtest.InHeaders, Store: true}, true},
		"500":         {forwardtest.Answer{Status: 500}, true}, "502": {forwardtest.Answer{Status: 502}, true}, "504": {forwardtest.Answer{Status: 504}, true},
		"429": {forwardtest.Answer{Status: 429}, false}, "503": {forwardtest.Answer{Status: 503}, false}, "507": {forwardtest.Answer{Status: 507}, false},
	} {
		node := forwardtest.NewReceiver(t)
		b := open(t, webhook.Config{Nodes: []string{node.URL}})
		node.Script(c.answer)
		stored := 0
		if c.answer.Store {
			stored = 1
		}
		for n := 0; len(node.Heads()) < stored+1; n++ {
			if err := b.Send(t.Context(), forwardtest.NewRun(0, 1, "a")); n > 0 && err != nil && node.Posts() > 2 {
				t.Fatal(err)
			}
		}
		heads := node.Heads()
		if got := heads[len(heads)-1].Get(forward.HeaderAgain); (got == "true") != c.marked {
			t.Errorf("%s: marked %q", name, got)
		}
		if err := b.Send(t.Context(), forwardtest.NewRun(0, 2, "b")); err != nil {
			t.Fatal(err)
		}
		if heads = node.Heads(); heads[len(heads)-1].Get(forward.HeaderAgain) != "" {
			t.Errorf("%s: the next run is marked, too", name)
		}
	}
	node := forwardtest.NewReceiver(t)
	b := open(t, webhook.Config{Nodes: []string{node.URL}})
	run := forwardtest.NewRun(0, 1, "a")
	run.Again = true // an earlier process sent it
	if err := b.Send(t.Context(), run); err != nil || node.Heads()[0].Get(forward.HeaderAgain) != "true" {
		t.Errorf("%v %v", err, node.Heads())
	}
}
