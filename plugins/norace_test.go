//go:build !race

package plugins

// raceDetector is true when the tests run under the race detector.
const raceDetector = false
