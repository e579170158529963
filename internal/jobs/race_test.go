//go:build race

package jobs_test

// raceDetector says whether the race detector slows everything down.
const raceDetector = true
