// Package promise sizes the tests of what Parley promises: at the promised figures with
// PARLEY_PROMISES=full, as make promises runs them, and at quick ones otherwise.
package promise

import "os"

// Full says that the promised figures are wanted.
func Full() bool { return os.Getenv("PARLEY_PROMISES") == "full" }

// Figure is how much a test does.
func Figure[T any](quick, promised T) T {
	if Full() {
		return promised
	}
	return quick
}
