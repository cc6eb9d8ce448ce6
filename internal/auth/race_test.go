//go:build race

package auth

// raceDetector: sync.Pool drops at random under it.
const raceDetector = true
