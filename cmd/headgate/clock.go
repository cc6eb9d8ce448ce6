package main

import (
	"context"
	"math/rand/v2"
	"time"
)

// clock is time and chance, so that tests of retries need neither.
type clock struct {
	now    func() time.Time
	pause  func(ctx context.Context, d time.Duration) error // returns early with the context's error
	random func() float64                                   // in [0, 1)
}

func systemClock() clock {
	return clock{now: time.Now, pause: pause, random: rand.Float64}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
