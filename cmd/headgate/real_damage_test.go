package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestM09ADamagedBlockIsNeverPresentedAsWhole flips a byte in the middle of what is stored: one event is lost and said to
// be, all others are there, also behind a kill, and new ones get numbers of their own.
func TestM09ADamagedBlockIsNeverPresentedAsWhole(t *testing.T) {
	const events = 40
	data := t.TempDir()
	p := startGateway(t, data)
	for i := range events {
		if status, answer := p.post("w", fmt.Sprintf(`{"n":%d}`+"\n", i), "ack=delivered"); status != 200 {
			t.Fatal(status, answer)
		}
	}
	p.kill()
	block := filepath.Join(data, "jetstream", "jetstream", "$G", "streams", "HEADGATE_w", "msgs", "1.blk")
	content, err := os.ReadFile(block)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 0x20
	if err := os.WriteFile(block, content, 0o600); err != nil {
		t.Fatal(err)
	}

	p = startGateway(t, data)
	if status, answer := p.post("w", `{"n":40}`+"\n"); status != 200 {
		t.Fatal(status, answer)
	}
	rows := p.tail("w")
	if len(rows) != events {
		t.Errorf("%d events are left of %d and a new one", len(rows), events)
	}
	numbers := map[string]bool{}
	for _, r := range rows {
		numbers[fmt.Sprint(r.Partition, r.Gateway, r.Number)] = true
	}
	if len(numbers) != len(rows) {
		t.Errorf("%d numbers for %d events", len(numbers), len(rows))
	}
	_, stderr := p.headgate(0, "tail", "--stream", "w", "--from", "start", "--wait", "1s")
	if !strings.Contains(stderr, "are missing") {
		t.Errorf("tail says only %q", stderr)
	}
	if !strings.Contains(p.log.String(), "STORED MESSAGES ARE LOST") {
		t.Errorf("the log does not say so:\n%s", p.log)
	}
	if page := p.get("/metrics"); !strings.Contains(page, `headgate_stored_messages_lost{stream="w"} 1`) {
		t.Error("no series says so")
	}
	if status, ready := p.ask("GET", p.admin+"/readyz", "", ""); status != 200 || !strings.Contains(ready, "w up to 1") {
		t.Errorf("%d %s", status, ready)
	}
}
