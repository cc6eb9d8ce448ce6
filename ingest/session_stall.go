package ingest

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/headgate-io/headgate/sdk/session"
)

// What waits for a client must hold little: there are tens of thousands of them. So the goroutine that reads a stream waits with little on its
// stack, and has no memory for a frame of which nearly nothing is there.

// aside calls f on another goroutine and returns when it has ended. What f needs of a stack is given back then: one that has grown
// stays as it is for as long as its goroutine waits, four times as deep as that needs.
func aside(f func()) {
	ended := make(chan any, 1)
	go func() {
		defer func() {
			bug := recover()
			if bug != nil {
				bug = fmt.Sprintf("%v\n%s", bug, debug.Stack())
			}
			ended <- bug
		}()
		f()
	}()
	if bug := <-ended; bug != nil {
		panic(bug)
	}
}

// early is how much of a frame's events, or all of it, is there before they get memory.
const early = headRoom / 2

// arriving returns when it is. Everything must be there by a time.
func (a *attachment) arriving(left uint64, by time.Time) *session.Error {
	want := int(min(left, early))
	for a.in.Buffered() < want {
		deadline := time.Now().Add(a.of.wait)
		if by.Before(deadline) {
			deadline = by
		}
		a.until(deadline)
		if _, err := a.in.Peek(a.in.Buffered() + 1); err != nil {
			return unread(err)
		}
	}
	return nil
}
