package gateway

import (
	"os"
	"runtime"
)

// spread returns a function that gives the Go runtime so many processors more than usual: those that the runtime finds by itself,
// or that the environment says. It may be called by one at a time.
func spread() func(more int) {
	usual, told, before := runtime.GOMAXPROCS(0), os.Getenv("GOMAXPROCS") != "", 0
	return func(more int) {
		if more == 0 && !told {
			runtime.SetDefaultGOMAXPROCS() // which also follows the limits of a control group again
			before = 0
			return
		}
		if before == 0 && !told {
			usual = runtime.GOMAXPROCS(0)
		}
		before = more
		runtime.GOMAXPROCS(usual + more)
	}
}
