package forwardtest_test

import (
	"errors"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
	"github.com/headgate-io/headgate/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// The backend in memory is itself a backend.
func TestBackend(t *testing.T) {
	forwardtest.Run(t, func(t *testing.T) *forwardtest.Harness {
		b := new(forwardtest.Backend)
		b.Judge(func(run *forward.Run) error {
			if forwardtest.Contains(t, run, "poison") {
				return &forward.SendError{Refused: true, Code: event.BackendRefused, Reason: "refused"}
			}
			return nil
		})
		always := func(code event.Code) func() {
			err := &forward.SendError{Code: code, Reason: "test"}
			b.Judge(func(*forward.Run) error { return err })
			return func() { b.Judge(nil) }
		}
		return &forwardtest.Harness{
			Backend: b, Reopen: func() forward.Backend { return b }, Stored: b.Runs, Checks: true,
			Close:   func() { always(event.BackendUnavailable) },
			Refused: "poison", RefusedCode: event.BackendRefused,
			Full:       func() func() { return always(event.BackendFull) },
			LoseAnswer: func() { b.Script(forwardtest.Step{Err: errors.New("cut"), Store: true}) },
			Hang: func() <-chan struct{} {
				arrived := make(chan struct{})
				b.Script(forwardtest.Step{Arrived: arrived, After: make(chan struct{})})
				return arrived
			},
		}
	})
}
