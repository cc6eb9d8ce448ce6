package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/admin"
)

// upload is the call that stores a module. What is on the way may lose the answer to one that takes minutes to compile, and the gateway
// has stored it or goes on. The same module again is the same version, so the call is repeated until there is an answer.
type upload struct {
	to    *remote
	call  call
	clock clock
	name  string
}

// uploadRepeats is how often an answer is asked for again, with pauses of up to backoffCap: longer than compiling may take.
const uploadRepeats = 30

func (u *upload) run(cmd *cobra.Command) (v admin.Version, err error) {
	for n := 0; ; n++ {
		_, err = u.to.do(cmd.Context(), u.call, &v)
		if err == nil {
			return v, nil
		}
		o := judge(err, u.clock.now())
		lost := o.unknown || n > 0 && o.retry // it was not there, or comes up again
		if !lost || !o.retry || cmd.Context().Err() != nil {
			return v, err
		}
		if n == uploadRepeats {
			return v, fmt.Errorf("no answer whether the version was stored (headgate plugin show %s tells): %w", u.name, err)
		}
		if n == 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "no answer yet whether the version is stored, asking again: %v\n", err)
		}
		if err := u.clock.pause(cmd.Context(), backoff(n, o, u.clock.random())); err != nil {
			return v, err
		}
	}
}
