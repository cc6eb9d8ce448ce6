//go:build !failpoints

package failpoint

// Enabled reports that the points do something in this build.
const Enabled = false

// Pass is called where the process comes by a point.
func Pass(Point) {}

// Err is Pass at a place that can fail.
func Err(Point) error { return nil }
