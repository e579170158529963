//go:build race

package media

// raceDetector says that sync.Pool forgets at random, as it does to find races:
// pion's SRTP then allocates.
const raceDetector = true
