package main

import (
	"context"
	"os/exec"
	"testing"
	"time"
)

// A page that is told to leave sends nothing more on its connection, opens another one at once, and hears on the old one what is still said.
// A scripted gateway says which frames came on which of them.
func TestPageLeavesAtOnceBehindGoAway(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, node, "../../examples/webtransport/testdata/goaway.mjs").CombinedOutput()
	if err != nil || string(out) != "ok\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
