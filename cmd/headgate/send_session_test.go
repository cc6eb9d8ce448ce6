package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A session that is given up says what was the matter last, and what to do when that was the connection.
func TestASessionThatIsGivenUpSaysWhatToDo(t *testing.T) {
	for said, todo := range map[string]bool{"connection: refused": true, "spool_full: because": false} {
		s := &talk{sender: &sender{file: "f"}}
		s.options.timeout = 3 * time.Second
		s.notice.Store(&said)
		err := s.stopped(&flying{batch: &batch{lines: []int{7}}}, context.DeadlineExceeded)
		if !strings.Contains(err.Error(), "stopped before f:7: given up after 3s: "+said) || strings.Contains(err.Error(), "is the gateway running?") != todo {
			t.Error(err)
		}
	}
}
