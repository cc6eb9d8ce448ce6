package gateway

import (
	"context"
)

// turn is a lock that one can wait for only so long.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// Lock waits for the turn.
func (t turn) Lock() { t <- struct{}{} }

// Unlock gives it to the next one.
func (t turn) Unlock() { <-t }

// lockBefore is Lock, or false when ctx ends first.
func (t turn) lockBefore(ctx context.Context) bool {
	select {
	case t <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}
