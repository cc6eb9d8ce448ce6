//go:build race

package forward

// raceDetector makes sync.Pool forget on purpose, so that allocations say nothing.
const raceDetector = true
