//go:build !linux

package plugins

import "errors"

// compilesApart: where a process can't be limited, another one is no better than this one.
const compilesApart = false

func limitSelf(compileLimits) error { return errors.New("not on this system") }
